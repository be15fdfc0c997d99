// The words of the page in the language of the page; a file per language is in the package.

const source = document.getElementById("words");
const WORDS = source ? JSON.parse(source.textContent) : {};
const plurals = new Intl.PluralRules(document.documentElement.lang);

// Return a sentence with values in its places; with a number `n`, the form that the number needs.
export function word(key, values = {}) {
  const form = WORDS[key] ?? WORDS[`${key}.${plurals.select(values.n ?? 0)}`] ?? WORDS[`${key}.other`] ?? key;
  return form.replace(/\{(\w+)\}/g, (place, name) => values[name] ?? place);
}

// Remember the language that this browser chose, and show the page in it.
export function chooseLanguage(language) {
  document.cookie = `comes_language=${language}; path=/; max-age=31536000; samesite=strict`;
  location.reload();
}

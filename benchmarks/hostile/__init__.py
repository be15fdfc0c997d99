"""Bad inputs, one function each, and what must become of them."""

"""The page of the lead: progress, agreement and pace."""

import asyncio
import math
import time

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from comes.annotate.site import Site, read_name
from comes.annotate.summary import Summary, summarise

FRESH = 2.0  # seconds for which a summary is reused


class LeadPages:
    """The pages of leads."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._one_at_a_time, self._summarised_at = asyncio.Lock(), -math.inf
        self._summary: Summary | None = None
        self.routes = [Route("/lead", self.lead)]

    async def lead(self, request: Request) -> Response:
        """Show progress, agreement and pace."""
        async with self._one_at_a_time:
            if time.monotonic() > self._summarised_at + FRESH:
                self._summary = await run_in_threadpool(summarise, self._site.project)
                self._summarised_at = time.monotonic()
        values = {"mode": "lead", "role": "lead", "summary": self._summary}
        return self._site.render_page("lead.html.jinja", name=read_name(request), **values)

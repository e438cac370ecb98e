"""The one way to make HTML: the templates of `templates/`, in which Jinja2 escapes whatever comes from elsewhere.

Names of caches, call sites, hosts and files were written by others. They reach a page as the value of an expression in a template, never
as part of one, and are escaped there, for an element's content and for a quoted attribute alike. What is markup already says so by its type
(Markup), which only a file of our own and what svg.py draws have. A name that a template misspells is an error, not an empty text.
"""

from __future__ import annotations

import functools
import importlib.resources

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from .terminal import visible


@functools.cache
def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("slabyard"), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
        keep_trailing_newline=True,
    )  # fmt: skip
    made.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "allow_nan": False}
    return made


def render(template: str, **values: object) -> str:
    """The text of a template with these values in it, without characters that a page obeys."""
    return visible(_environment().get_template(template).render(values))


def part(name: str) -> Markup:
    """A style sheet or script of `templates/`, which goes into a page as it is."""
    return Markup(importlib.resources.files("slabyard").joinpath("templates", name).read_text("utf-8"))

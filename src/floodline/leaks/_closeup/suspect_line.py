"""Adds to a suspect the line that feeds it: as traced, or as the source shows it."""

from __future__ import annotations

import linecache
import types
from dataclasses import replace

from floodline._python.mutations import GROWS_ANYTHING
from floodline.leaks._closeup.closeup import Close
from floodline.leaks._closeup.feeding_line import Watch
from floodline.leaks._closeup.stored_attributes import module_with
from floodline.leaks._figures.suspect import Suspect
from floodline.leaks._heap.owner_names import last_name, module_of
from floodline.leaks._objects.anatomy import is_standard
from floodline.leaks._objects.territory import is_program_file, program_modules, rank_of_module
from floodline.leaks._source.definitions import class_assigns, file_of_module
from floodline.leaks._source.feeding_statements import calling_place, feeding_place, only_call
from floodline.leaks._source.place import Place
from floodline.leaks._vocabulary import LineSource


def with_traced_line(suspect: Suspect, close: Close, watch: Watch | None) -> Suspect:
    """Add the feeding line: the cached function, else the traced line, else from the source."""
    code = close.definition()
    if code is not None:
        return _at(suspect, _definition(code), LineSource.TRACE)
    place, source = (watch.place() if watch else None), LineSource.TRACE
    if place is not None and not suspect.capped:
        cap, capped = close.cap_at(place)
        suspect = suspect.but(cap=cap, capped=capped)
    name, module = last_name(suspect.owner), module_of(suspect.defined_in)
    doubted = watch is not None and watch.blind and not is_standard(suspect.owner)
    if place is None or (doubted and not line_names(place, name)):
        home = last_name(suspect.defined_in)
        read = feeding_place(module, name, home=home, nested=close.nested) if module else None
        place, source = (read, LineSource.STATIC) if read else (place, source)
    held = close.held_by_c() if place is None else None
    if held is not None:
        place, source = _definition(held), LineSource.STATIC
    return suspect if place is None else _at(suspect, place, source)


def with_static_line(suspect: Suspect, close: Close) -> Suspect:
    """Add the feeding line from the source alone: the cached function, else a statement."""
    code = close.definition()
    if code is not None:
        return _at(suspect, _definition(code), LineSource.STATIC)
    module, name = module_of(suspect.defined_in), last_name(suspect.owner)
    home = last_name(suspect.defined_in)
    place = feeding_place(*close.stored) if close.stored else None
    if place is None and module:
        place = feeding_place(_writer(close, module, name), name, home=home, nested=close.nested)
    if place is None and module and file_of_module(module) is None:  # a module in C
        place = only_call(program_modules(), name)
    return suspect if place is None else _at(suspect, _called(place, close), LineSource.STATIC)


def _writer(close: Close, module: str, name: str) -> str:
    """Return the module that feeds: the program's, for an attribute it gave a library's object."""
    kind = close.defined_in[len(module) + 1 :]
    if not kind or rank_of_module(module) == 0 or class_assigns(module, kind, name):
        return module
    known = close.name_in_program()
    return module_with(name, known[0] if known else None) or module


def _called(place: Place, close: Close) -> Place:
    """Add to a line of a library the line of the program that calls it, as the source shows it."""
    if is_program_file(place.file):
        return place
    known = close.name_in_program()
    at = None
    if known is not None:
        at = calling_place(*known, place.function)
        at = at or (feeding_place(*known, nested=True) if close.nested else None)
        at = at or calling_place(*known)
    if at is None and (known is None or place.function not in GROWS_ANYTHING):
        of_class = place.function in ("__init__", "__new__")
        called = last_name(close.defined_in) if of_class else place.function
        at = only_call(program_modules(), called)
    return place if at is None else replace(place, caller=(at.file, at.line))


def line_names(place: Place, name: str) -> bool:
    """Return True if the text of a line contains the name."""
    return name in linecache.getline(place.file, place.line)


def _definition(code: types.CodeType) -> Place:
    return Place(code.co_filename, code.co_firstlineno, code.co_name)


def _at(suspect: Suspect, place: Place, source: LineSource) -> Suspect:
    return suspect.but(
        file=place.file,
        line=place.line,
        line_source=source,
        function=place.function,
        caller=place.caller,
    )

"""Finds what a name of one file means in the whole program: modules, classes, functions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from floodline.scan._facts.calls import NAME
from floodline.scan._facts.model import Class, FileFacts, Function
from floodline.scan._facts.references import (
    ANSWER,
    CLASS,
    INNER,
    INSTANCE,
    MODULE,
    OBJECT,
    OWN,
    Base,
    base_in_module,
    base_of_instance,
)
from floodline.scan._program.imports import Imports, renamed

HOPS = 6
INSIDE = ".<locals>."
NAMED = ("slot", "item")
KEPT = {"returned", "item", "entry", "body"}  # where instances created for others go


class Names:
    """Tables over all files; a key is `module:qualified.name`."""

    def __init__(self, files: list[FileFacts]) -> None:
        self.files = files
        self.modules = {file.module: file for file in files}
        self._by_path = {
            file.path.removesuffix(".py").removesuffix("/__init__"): file.module for file in files
        }
        self.places = Imports(files, self.modules, self._by_path)
        meant = self.places.meant
        self.imports = {
            file.module: {name: meant(file.path, target) for name, target in file.imports}
            for file in files
        }
        self._stars = {
            module: [target for name, target in found.items() if name.endswith(".*")]
            for module, found in self.imports.items()
        }
        self.globals = {file.module: dict(file.globals) for file in files}
        self.classes: dict[str, Class] = {}
        self.functions: dict[str, Function] = {}
        self.by_simple_name: dict[str, list[str]] = defaultdict(list)
        self.methods: dict[str, list[str]] = defaultdict(list)
        self.inner: dict[str, set[str]] = defaultdict(set)  # functions of functions, by module
        self._here, self._resolved = "", dict[str, str]()
        self._every: dict[str, dict[str, str]] = defaultdict(dict)  # what resolved names mean
        for file in files:
            for item in file.classes:
                key = f"{file.module}:{item.name}"
                self.classes[key] = item
                self.by_simple_name[item.name].append(key)
            for function in file.functions:
                key = f"{file.module}:{function.name}"
                self.functions[key] = function
                if INSIDE in function.name:
                    self.inner[file.module].add(function.name.rpartition(INSIDE)[2])
                elif function.owner and "<" not in function.name:
                    self.methods[function.name.rpartition(".")[2]].append(key)
        self.renamed = renamed(self.imports)
        last = {function.name.rpartition(".")[2] for function in self.functions.values()}
        self.callable = last | self.by_simple_name.keys() | self.renamed | {"cls"}
        self._attributes = {key: dict(item.attributes) for key, item in self.classes.items()}
        # not cached properties: one slows down the look-up of every other attribute on 3.11
        self._others: dict[str, list[tuple[str, str]]] | None = None
        self._by_attribute: dict[str, list[tuple[str, Base]]] | None = None
        self._orders: dict[str, list[str]] = {}
        self._overrides: dict[tuple[str, str], list[str]] = {}
        self._shared: dict[tuple[str, int], str] = {}
        self._answers: dict[tuple[str, str, str], str] = {}
        self._returned: dict[str, str] = {}
        self._kept: dict[tuple[str, bool], str] = {}
        self._makings: dict[str, dict[str, set[str]]] = {}
        self.children: dict[str, list[str]] = defaultdict(list)
        for key in self.classes:
            for parent in self.order(key)[1:]:
                self.children[parent].append(key)

    def resolve(self, module: str, name: str) -> str:
        """Follow imports from a name of a module to `module:name`; a module gives `module:`."""
        if module != self._here:  # lookups come in runs: many for one module, then the next
            self._here, self._resolved = module, self._every[module]
        known = self._resolved.get(name)
        if known is None:
            known = self._resolved[name] = self._follow(module, name)
        return known

    def _follow(self, module: str, name: str) -> str:
        if "." in name:
            return self._follow_path(module, name)
        imports, stars = self.imports, self._stars
        for _ in range(HOPS):
            target = imports[module].get(name) if module in imports else None
            if target is None:
                giver = self._giver(module, name) if stars.get(module) else ""
                if not giver or self._has(giver, name):
                    return f"{giver or module}:{name}"
                module = giver
                continue
            if ":" not in target:
                return f"{target}:"
            source, _, name = target.partition(":")
            module = self.absolute(module, source) if source.startswith(".") else source
            if self._is_inside(module, name):
                return f"{module}.{name}:"
        return f"{module}:{name}"

    def _follow_path(self, module: str, path: str) -> str:
        """Follow `package.module.name` after `import package.module`, as far as these are known."""
        head, _, rest = path.partition(".")
        key = self._follow(module, head)
        for part in rest.split("."):
            if not key.endswith(":"):
                return f"{module}:{path}"
            known = self._is_inside(key[:-1], part)
            key = f"{key[:-1]}.{part}:" if known else self._follow(key[:-1], part)
        return key

    def _is_inside(self, package: str, name: str) -> bool:
        """Return True if a name of a package is a module; `from .Users import Users` hides it."""
        inside = f"{package}.{name}"
        if inside not in self.modules or self._has(package, name):
            return False
        source, _, found = self.imports.get(package, {}).get(name, "").partition(":")
        return not found or self.absolute(package, source) == package

    def _giver(self, module: str, name: str) -> str:
        """Return the module from which `import *` takes a name, `""` if there is none."""
        asked = {module}
        waiting = [module] if self._stars.get(module) and not self._has(module, name) else []
        while waiting:
            here = waiting.pop()
            for target in self._stars.get(here, ()):
                source = self.absolute(here, target.partition(":")[0])
                if self._has(source, name) or name in self.imports.get(source, ()):
                    return source
                if source not in asked:
                    asked.add(source)
                    waiting.append(source)
        return ""

    def _has(self, module: str, name: str) -> bool:
        key = f"{module}:{name}"
        return key in self.classes or key in self.functions or name in self.globals.get(module, {})

    def absolute(self, module: str, source: str) -> str:
        if not source.startswith("."):
            return source
        dots = len(source) - len(source.lstrip("."))
        file = self.modules.get(module)
        parts = module.split(".") if module != "__init__" else []  # the root of a project
        is_package = file is not None and file.path.endswith("__init__.py")
        parts = parts[: len(parts) - dots + (1 if is_package else 0)]
        rest = source.lstrip(".")
        found = ".".join([*parts, rest] if rest else parts)
        if found in self.modules or file is None:
            return found
        folder = file.path.split("/")[:-dots]  # above a package there may be plain folders
        return self._by_path.get("/".join([*folder, *rest.split(".")]), found)

    def class_of(self, module: str, text: str) -> str:
        """Return the key of the class that a dotted name means, `""` for an external one."""
        head, _, rest = text.partition(".")
        key = self.resolve(module, head)
        if rest:
            inner, _, name = rest.rpartition(".")
            owner = key.rstrip(":").replace(":", ".")
            key = self.resolve(f"{owner}.{inner}" if inner else owner, name)
        if key in self.classes:
            return key
        alike = self.by_simple_name.get(text.rpartition(".")[2], ())
        outside = self.places.is_outside(self.imports.get(module, {}).get(head, ""))
        return alike[0] if len(alike) == 1 and not outside else ""

    def is_outside(self, module: str, text: str) -> bool:
        """Return True if a dotted name means something that no scanned module defines."""
        found = self.resolve(module, text.partition(".")[0])
        return found.partition(":")[0] not in self.modules

    def order(self, key: str) -> list[str]:
        """Return a class and all its known bases, nearest first."""
        if key in self._orders:
            return self._orders[key]
        self._orders[key] = [key]
        module = key.partition(":")[0]
        found = [key]
        for base in self.classes[key].bases:
            parent = self.class_of(module, base)
            if parent:
                found += [item for item in self.order(parent) if item not in found]
        self._orders[key] = found
        return found

    def of_one_family(self, attribute: str, keys: Sequence[str]) -> str:
        """Return the attribute that others of this name only set again, `""` if there is none."""
        if len(keys) < 2:
            return keys[0] if keys else ""
        asked = attribute, len(keys)
        if asked not in self._shared:
            owners = [key.rpartition(".")[0] for key in keys]
            above = [self.order(one) if one in self.classes else [one] for one in owners]
            tops = [one for one in owners if all(one in order for order in above)]
            self._shared[asked] = f"{tops[0]}.{attribute}" if tops else ""
        return self._shared[asked]

    def attribute_class(self, key: str, attribute: str) -> str:
        """Return the class of what an attribute holds, as far as the program says so."""
        for holder in self.order(key):
            made = self._attributes[holder].get(attribute)
            if made:
                home, _, owner = holder.partition(":")
                return self.type_of(home, made, owner)
        found = self.method(key, attribute)
        getter = self.functions[found] if found else None
        return self._given_by(found) if getter and "property" in getter.decorators else ""

    def method(self, key: str, name: str) -> str:
        """Return the function that a method name means on a class."""
        for holder in self.order(key):
            module, _, owner = holder.partition(":")
            if f"{module}:{owner}.{name}" in self.functions:
                return f"{module}:{owner}.{name}"
        return ""

    def is_alone(self, function: str) -> bool:
        """Return True if no class has another method of the name of this function."""
        return len(self.methods.get(function.rpartition(".")[2], ())) < 2

    def methods_like(self, key: str, prefix: str) -> list[str]:
        """Return the methods of a class and those below it whose names begin alike."""
        kinds = [*self.order(key), *self.children.get(key, ())] if key in self.classes else []
        found = [(kind.partition(":")[0], f"{kind.partition(':')[2]}.{prefix}") for kind in kinds]
        return [
            f"{module}:{function.name}"
            for module, start in found
            for function in self.modules[module].functions
            if function.name.startswith(start)
        ]

    def overrides(self, key: str, name: str) -> list[str]:
        """Return the methods of this name in classes below a class."""
        known = self._overrides.get((key, name))
        if known is None:
            below = [f"{child}.{name}" for child in self.children.get(key, ())]
            known = self._overrides[key, name] = [one for one in below if one in self.functions]
        return known

    def base_class(self, module: str, owner: str, base: Base) -> str:
        """Return the class of the object whose attribute is meant."""
        kind, name, inner = base.kind, base.name, base.inner
        if kind == MODULE:
            return self._class_of_global(module, name)
        if kind == OWN:
            own = f"{module}:{owner}"
            return self.attribute_class(own, name) if own in self.classes else ""
        if kind == CLASS:
            return self.class_of(module, name)
        if kind == ANSWER:
            return self.answer_of(module, owner, name)
        if kind == INNER and inner is not None:
            found = self.base_class(module, owner, inner)
            return self.attribute_class(found, name) if found else self._kept_as(name, inner)
        return f"{module}:{owner}" if kind == INSTANCE and owner else ""

    def _kept_as(self, attribute: str, base: Base) -> str:
        """Return the one class that the program keeps under a name, on whatever object.

        `app.state.users = Users()` answers `request.app.state.users`. What a class of the program
        keeps answers for objects that may be of it: not for those of an external class.
        """
        while base.inner is not None:
            base = base.inner
        own = base.kind == OWN
        asked = attribute, own
        if asked not in self._kept:
            found = {self.class_of(*made) for made in self._attached(attribute)}
            for holder, made in self._slots(attribute) if own else ():
                home, _, owner = holder.partition(":")
                found.add(self.type_of(home, made, owner))
            self._kept[asked] = found.pop() if len(found) == 1 else ""
        return self._kept[asked]

    def _attached(self, attribute: str) -> Sequence[tuple[str, str]]:
        """Return where and as what instances are created that go to this attribute of others."""
        if self._others is None:
            self._others = defaultdict(list)
            for file in self.files:
                for call in file.calls:
                    kept, callee = call.kept, call.callee
                    ref = kept.ref if kept.how in NAMED and callee.kind == NAME else None
                    if ref is not None and ref.kind == OBJECT:
                        self._others[ref.name].append((file.module, callee.name))
        return self._others.get(attribute, ())

    def _slots(self, attribute: str) -> Sequence[tuple[str, Base]]:
        """Return the classes that have this attribute, with what creates its value."""
        if self._by_attribute is None:
            self._by_attribute = defaultdict(list)
            for key, attributes in self._attributes.items():
                for name, made in attributes.items():
                    self._by_attribute[name].append((key, made))
        return self._by_attribute.get(attribute, ())

    def _class_of_global(self, module: str, text: str) -> str:
        holder, _, last = text.rpartition(".")
        key = self.resolve(module, holder or text)
        if holder:
            if not key.endswith(":"):
                found = self._class_of_global(module, holder)
                return self.attribute_class(found, last) if found else ""
            key = self._follow(key[:-1], last)
        if key in self.classes:
            return key
        owner, _, name = key.partition(":")
        made = self.globals.get(owner, {}).get(name)
        return self.type_of(owner, made) if made else ""

    def type_of(self, module: str, made: Base, owner: str = "") -> str:
        """Return the class that is instantiated, or that a function returns."""
        if made.kind != ANSWER:
            return self.class_of(module, made.name)
        return self.answer_of(module, owner, made.name)

    def answer_of(self, module: str, owner: str, text: str) -> str:
        """Return the class of what a function returns, as far as its signature says so.

        `app = app.wrapped()` depends on itself, and has no answer.
        """
        asked = (module, owner, text)
        if asked not in self._answers:
            self._answers[asked] = ""
            self._answers[asked] = self._answer(module, owner, text)
        return self._answers[asked]

    def _answer(self, module: str, owner: str, text: str) -> str:
        (head, _, rest), found = text.rpartition("."), ""
        if not head:
            key = self.resolve(module, text)
        elif head in ("self", "cls"):
            own = f"{module}:{owner}"
            key = self.method(own, rest) if own in self.classes else ""
        else:
            found = self.base_class(module, owner, base_in_module(head))
            source = self.resolve(module, head)
            key = self.method(found, rest) if found else f"{source}{rest}"
        function = self.functions.get(key)
        if function is None:
            return key if key in self.classes else ""
        given = self._given_by(key)  # a base's `cls()` is of the class that is asked
        return found if found and given == f"{key.partition(':')[0]}:{function.owner}" else given

    def _given_by(self, key: str) -> str:
        """Return the class of what a function returns: what it says, creates, or gets from a slot.

        A function that returns the slot which it fills depends on itself.
        """
        if key not in self._returned:
            self._returned[key] = ""
            self._returned[key] = self._find_returned(key)
        return self._returned[key]

    def _find_returned(self, key: str) -> str:
        function, (module, _, name) = self.functions[key], key.partition(":")
        if function.returns and (known := self.class_of(module, function.returns)):
            return known
        if made := self._made_in(key):
            return made
        kept = [ref for ref, where in self.modules[module].escapes if where == name]
        bases = [base_of_instance(ref.name) for ref in kept if ref.kind == INSTANCE]
        bases += [base_in_module(ref.name) for ref in kept if ref.kind == MODULE]
        found = {self.base_class(module, function.owner, base) for base in bases}
        return found.pop() if len(found) == 1 else ""

    def _made_in(self, key: str) -> str:
        """Return the one class whose instances a function creates and does not pass on."""
        module, _, function = key.partition(":")
        if module not in self._makings:
            found: dict[str, set[str]] = defaultdict(set)
            for call in self.modules[module].calls:
                kept = call.kept.how in KEPT or call.kept.in_slot(INSTANCE, MODULE)
                name = call.callee.name if call.callee.kind == NAME else ""
                if kept and (name.lstrip("_")[:1].isupper() or name == "cls"):
                    found[call.function].add(name)
            self._makings[module] = found
        own = self.functions[key].owner
        names = self._makings[module].get(function, ())
        made = [self.class_of(module, own if name == "cls" else name) for name in names]
        known = {kind for kind in made if kind}
        return known.pop() if len(known) == 1 else ""

"""The grounds of the four proofs, and their texts."""

from __future__ import annotations

from floodline.scan._facts.reasons import Ground


class Holder(Ground):
    """What holds a container, and how long that lives."""

    MODULE = "held by the module"
    OBJECT_OF_MODULE = "held by a module-level object"
    METACLASS = "held by a metaclass"
    FIELD_OF_BASE = "possibly a field that its base class creates per instance"
    CLASS = "held by the class, shared by all instances"
    ENDLESS_LOCAL = "a local variable of a function that loops forever"
    LOCAL = "a local variable of a single call"
    CAPTURED_BY_MODULE = "captured by a function that the module keeps"
    CAPTURED_BY_CALLER = "captured by a function that the caller holds"
    CAPTURED_AND_RETURNED = "captured by the returned function"
    CYCLE = "its owners form a cycle"
    NOT_KNOWN = "the holder is unknown"
    SHORT_LIVED = "instances are short-lived values"
    SINGLETON = "{} keeps its only instance"
    KEPT_BUT_OTHERS_PASS = "{}, but other instances are not kept: {}"
    LIBRARY = "a public class of a library, assumed to be long-lived"
    NEVER_MADE = "nothing that creates it was found"
    MADE_BY_PROGRAM = "{} is created when the file runs as a program"
    KEPT_BY_MODULE = "{} is kept by the module"
    KEPT_BY_CLASS = "{} is kept by a class"
    MADE_ON_LOAD = "{} is created when the module is imported"
    MADE_BY_CACHED = "{} is created once by a cached function"
    MADE_ANEW = "{} is created for each call"
    HANDED_ON = "{} is passed on"
    ENDLESS_LOOP = "{} lives as long as its function's endless loop"
    LOCAL_INSTANCE = "{} is a local variable of a single call"
    KEPT_IN = "{} is kept in {}"
    KEPT_IN_PASSING = "{} is kept in something that may be short-lived"
    LOOP_OF_START = "{} lives as long as the start-up function's loop"
    START = "{} lives as long as the start-up function runs"
    KEPT_BY_OWNER = "{} is kept by {}: {}"
    KEPT_BY_INSTANCE = "{} is kept by an instance"


class Run(Ground):
    """What is seen to run a function again and again."""

    LOOP_WAITS = "a loop in {}() waits for more"
    CALLED_FOR_EVENTS = "{}() is called for each event"
    SERVES_ITS_OWNER = "{}() is called by the code that was given the {}"
    DECORATED = "@{} calls {}() for each event"
    REGISTERED = "{}() is registered for an event"


class Path(Ground):
    """How often a container grows."""

    ON_LOAD = "grows when the module is imported"
    BEHIND_A_FLAG = "grows once, behind a flag"
    WHILE_MADE = "grows while the instance is created"
    WAITING_LOOP = "grows in a loop in {}() that waits for more"
    DEFINITION = "{}() runs at definition time"
    SEEN = "grows each time {}() runs: {}"
    FOR_CALLERS = "{}() creates one more whenever it is called"
    STREAM = "grows in a loop in {}() that may not end"
    LOOP = "grows in a loop in {}()"
    COMMAND_LINE = "{}() is command-line code, which runs once"
    UNSEEN = "grows each time {}() runs; no caller found"
    START = "{}() runs only at start-up"
    NOT_KNOWN = "grows in {}(); how often that runs is unknown"


class Key(Ground):
    """Whether the range of keys is open."""

    EVERY_CALL = "every call adds one more"
    KEY = "key {}"
    NAMED = "{}: {}"
    OF_LOOKUP = "looked up: {}"
    COMES_AND_GOES = "{}; it comes and goes"
    NARROWED = "{}, {}"
    IN_ANOTHER_TABLE = "and must be in another table first"
    THERE_ALREADY = "only keys that already exist"
    OTHERS_REFUSED = "others are rejected first"
    MAY_BE_REFUSED = "and a call that receives it may reject it"


class Origin(Ground):
    """Where a value comes from."""

    RECEIVED = "received on each iteration of the loop"
    A_CONSTANT = "a constant"
    A_TYPE = "a type"
    REUSED = "as many as exist at a time ({})"
    NEW_EACH_TIME = "a new value each time ({})"
    TURN = "what a loop gets on each iteration"
    TAKEN = "what is taken out of {}"
    WITH_EVENT = "{} comes with each event"
    FIXED = "{} is fixed"
    ELSEWHERE = "comes from {}"
    NOT_KNOWN = "where it comes from is unknown"
    MADE_OF = "derived from another value: {}"
    COUNTS_UP = "{} counts up"
    CONSTANT = "{} is a constant"
    PARAMETER = "a parameter"
    ONE_OF_FIXED_SET = "{} is one of a fixed set ({})"
    FIXED_FOR_SOME = "{} is fixed for some callers, and comes with events for others"
    BY_CALLER = "{} is given by the caller"
    GIVEN_FOR_EVENT = "{} is given for each event"
    DEFAULT = "{} has its default value"
    A_FUNCTION = "a function"


class Out(Ground):
    """When what removes from a container runs."""

    NOTHING = "nothing removes from it"
    NOTHING_HERE = "nothing here removes from it, but it is passed to unknown code"
    LIMIT = "its size is limited"
    OTHER_EVENT = "removed only by another event in {}()"
    WHERE_IT_GROWS = "removed where it grows, in {}()"
    BY_ITS_INSTANCE = "{}() removes what its instance added"
    BY_ITSELF = "{}() runs on its own"
    IN_A_LOOP = "{}() runs in a loop"
    CALLED_WHERE_IT_GROWS = "{}() is called where it grows"
    ONE_EVENT = "{}() runs only when one particular event arrives"
    COUNTERPART = "{}() undoes what its counterpart did"
    AT_AN_END = "{}() runs only when something ends"
    ON_REQUEST = "{}() runs only on request"
    AT_EXIT = "{}() runs only when the process ends"
    ITS_EVENT = "{}() runs only when its event arrives"
    WHILE_MADE = "{}() is called only while an instance is created"
    PUBLIC = "{}() is called only by functions that nothing here calls"
    OF_ANOTHER = "{}() removes from an attribute of this name, of an object of unknown class"
    CALLED_BY_NAME = "{}() may be what a call of that name means"
    RELOADED = "{}() replaces it with something that may be as large"
    AT_START = "{}() is called only at start-up"
    HANDED_TO_CALLER = "{}() is handed to the caller"
    FOR_REGISTERED = "{}() is there for code that registered"
    FOR_CALLERS = "{}() is there for outside callers"
    UNCALLED = "nothing calls {}()"
    EXPIRED = "removed only if it is asked for again after it has expired"

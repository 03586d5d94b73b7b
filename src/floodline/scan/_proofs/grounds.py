"""The grounds of the four proofs, and how they are told."""

from __future__ import annotations

from floodline.scan._facts.reasons import Ground


class Holder(Ground):
    """Who holds a container, and how long that lives."""

    MODULE = "held by the module"
    OBJECT_OF_MODULE = "held by an object of the module"
    METACLASS = "held by a class of classes"
    FIELD_OF_BASE = "perhaps a field that its base class makes anew"
    CLASS = "held by the class, shared by all instances"
    ENDLESS_LOCAL = "a local of a function that goes round for ever"
    LOCAL = "a local of one call"
    CAPTURED_BY_MODULE = "captured by a function that the module keeps"
    CAPTURED_BY_CALLER = "captured by a function that its caller has"
    CAPTURED_AND_RETURNED = "captured by the function that is returned"
    CYCLE = "a cycle of owners"
    NOT_KNOWN = "the holder is not known"
    SHORT_LIVED = "instances are short-lived values"
    SINGLETON = "{} keeps its only instance"
    KEPT_BUT_OTHERS_PASS = "{}, but others pass: {}"
    LIBRARY = "a public class of a library, assumed to live long"
    NEVER_MADE = "no place that makes it was found"
    MADE_BY_PROGRAM = "{} is made where the file runs as a program"
    KEPT_BY_MODULE = "{} is kept by the module"
    KEPT_BY_CLASS = "{} is kept by a class"
    MADE_ON_LOAD = "{} is made while the module is loaded"
    MADE_BY_CACHED = "{} is made once by a cached function"
    MADE_ANEW = "{} is made anew for each call"
    HANDED_ON = "{} is handed on"
    ENDLESS_LOOP = "{} lives as long as the endless loop of its function"
    LOCAL_INSTANCE = "{} is a local of one call"
    KEPT_IN = "{} is kept in {}"
    KEPT_IN_PASSING = "{} is kept in something that may pass"
    LOOP_OF_START = "{} lives as long as the loop of the start function"
    START = "{} lives as long as the start function runs"
    KEPT_BY_OWNER = "{} is kept by {}: {}"
    KEPT_BY_INSTANCE = "{} is kept by an instance"


class Run(Ground):
    """Who is seen to run a function again and again."""

    LOOP_WAITS = "a loop of {}() waits for more"
    CALLED_FOR_EVENTS = "{}() is called for each event"
    SERVES_ITS_OWNER = "{}() is there for whoever was given the {}"
    DECORATED = "@{} calls {}() for each event"
    REGISTERED = "{}() is registered for an event"


class Path(Ground):
    """How often a container grows."""

    ON_LOAD = "grows while the module is loaded"
    BEHIND_A_FLAG = "grows once, behind a flag"
    WHILE_MADE = "grows while the instance is made"
    WAITING_LOOP = "grows in a loop of {}() that waits for more"
    DEFINITION = "{}() runs where things are defined"
    SEEN = "grows each time {}() runs: {}"
    FOR_CALLERS = "{}() makes one more for whoever calls it"
    STREAM = "grows in a loop of {}() that may go on"
    LOOP = "grows in a loop of {}()"
    COMMAND_LINE = "{}() belongs to a command line, which runs once"
    UNSEEN = "grows each time {}() runs; nobody is seen to run it"
    START = "{}() runs at start-up only"
    NOT_KNOWN = "grows in {}(); how often that runs is not known"


class Key(Ground):
    """Whether the range of keys is open."""

    EVERY_CALL = "every call adds one more"
    KEY = "key {}"
    NAMED = "{}: {}"
    OF_LOOKUP = "of the look-up: {}"
    COMES_AND_GOES = "{}; it comes and goes"
    NARROWED = "{}, {}"
    IN_ANOTHER_TABLE = "and has to be in another table first"
    THERE_ALREADY = "only keys that are there already"
    OTHERS_REFUSED = "others are refused before"
    MAY_BE_REFUSED = "and a call that is given it may refuse it"


class Origin(Ground):
    """Where a value comes from."""

    RECEIVED = "received in each turn of the loop"
    A_CONSTANT = "a constant"
    A_TYPE = "a type"
    REUSED = "as many as there are things at a time ({})"
    NEW_EACH_TIME = "a new value each time ({})"
    TURN = "what a loop gets turn by turn"
    WITH_EVENT = "{} comes with each event"
    FIXED = "{} is one fixed thing"
    ELSEWHERE = "comes from {}"
    NOT_KNOWN = "where it comes from is not known"
    MADE_OF = "made of what comes from elsewhere: {}"
    COUNTS_UP = "{} counts up"
    CONSTANT = "{} is a constant"
    PARAMETER = "a parameter"
    ONE_OF_FIXED_SET = "{} is one of a fixed set ({})"
    FIXED_FOR_SOME = "{} is fixed for some who call, and comes with events for others"
    BY_CALLER = "{} is given by whoever calls"
    GIVEN_FOR_EVENT = "{} is given for each event"
    DEFAULT = "{} has its default"
    A_FUNCTION = "a function"


class Out(Ground):
    """When what removes from a container runs."""

    NOTHING = "nothing removes from it"
    NOTHING_HERE = "nothing here removes from it, but it is handed to code that is not known"
    LIMIT = "its size is limited"
    OTHER_EVENT = "removed by another event of {}() only"
    WHERE_IT_GROWS = "removed where it grows, in {}()"
    BY_ITS_INSTANCE = "{}() takes out what its instance put in"
    BY_ITSELF = "{}() runs by itself"
    IN_A_LOOP = "{}() runs in a loop"
    CALLED_WHERE_IT_GROWS = "{}() is called where it grows"
    ONE_EVENT = "{}() runs only when one event comes"
    COUNTERPART = "{}() undoes what its counterpart did"
    AT_AN_END = "{}() runs only when something ends"
    ON_REQUEST = "{}() runs only when somebody asks for it"
    AT_EXIT = "{}() runs only at the end of the process"
    ITS_EVENT = "{}() runs only when its event comes"
    WHILE_MADE = "{}() is called only while an instance is made"
    PUBLIC = "{}() is reached from a public function"
    AT_START = "{}() is called at start-up only"
    HANDED_TO_CALLER = "{}() is handed to the caller"
    FOR_REGISTERED = "{}() is there for whoever registered"
    FOR_CALLERS = "{}() is there for callers"
    UNCALLED = "nobody calls {}()"
    EXPIRED = "removed only if somebody asks for it again after it has expired"

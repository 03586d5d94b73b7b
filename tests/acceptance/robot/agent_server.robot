*** Settings ***
Documentation     The example server, as a process of its own, over HTTP.
Library           driver.AgentServer
Suite Setup       Start Server
Test Teardown     End All Chats
Suite Teardown    Clean Up


*** Test Cases ***
A Conversation Remembers Its Turns
    Say    alice    hello there
    ${answer} =    Say    alice    remember me
    Should Be Equal As Integers    ${answer}[turns]    2
    Should Contain    ${answer}[reply]    Turn 2
    ${texts} =    Texts Of    alice
    Should Be Equal    ${texts}[0]    hello there
    Should Be Equal    ${texts}[2]    remember me

The Same Words Get The Same Answer
    ${alice} =    Say    alice    hello there
    ${bob} =    Say    bob    hello there
    Should Be Equal    ${alice}    ${bob}

The Live Count Follows The Sessions
    Live Count Should Be    0
    Say    alice    hello
    Say    bob    hello
    Live Count Should Be    2
    End Chat    alice
    Live Count Should Be    1

An Unknown Conversation Is Not Created By Looking
    Should Be Refused With    404    GET    /chat/nobody
    Live Count Should Be    0

Ending Is Idempotent
    Say    alice    hello
    End Chat    alice
    End Chat    alice
    End Chat    nobody
    Should Be Refused With    404    GET    /chat/alice

An Ended Conversation Starts Anew
    Say    alice    hello
    End Chat    alice
    ${answer} =    Say    alice    hello again
    Should Be Equal As Integers    ${answer}[turns]    1

A Completed Conversation Leaves Memory And Is Not Lost
    Say    alice    hello
    Complete Chat    alice
    Wait Until Keyword Succeeds    30 s    50 ms    Live Count Should Be    0
    ${answer} =    Say    alice    still there?
    Should Be Equal As Integers    ${answer}[turns]    2

Every Answered Message Survives A Kill
    Say    alice    before the kill
    Say    bob    me too
    Kill Server
    Start Server
    Live Count Should Be    0
    ${texts} =    Texts Of    alice
    Should Be Equal    ${texts}[0]    before the kill
    ${answer} =    Say    bob    and after it
    Should Be Equal As Integers    ${answer}[turns]    2

An Orderly Stop Loses Nothing Either
    Say    alice    hello
    Stop Server
    Start Server
    ${answer} =    Say    alice    hello again
    Should Be Equal As Integers    ${answer}[turns]    2

An Ended Conversation Does Not Come Back After A Kill
    Say    alice    hello
    End Chat    alice
    Kill Server
    Start Server
    Should Be Refused With    404    GET    /chat/alice

Messages That Come Together Are All Kept
    ${turns} =    Say All At Once    alice    8
    ${expected} =    Evaluate    list(range(1, 9))
    Should Be Equal    ${turns}    ${expected}
    Live Count Should Be    1

Bad Input Is Refused With A Reason
    ${long} =    Evaluate    "x" * 300
    ${huge} =    Evaluate    "x" * 70000
    Should Be Refused With    400    POST    /chat/alice    this is not JSON
    Should Be Refused With    422    POST    /chat/alice    {"words": "hello"}
    Should Be Refused With    422    POST    /chat/alice    {"text": " "}
    Should Be Refused With    422    POST    /chat/alice    [1]
    Should Be Refused With    413    POST    /chat/alice    ${huge}
    Should Be Refused With    400    POST    /chat/${long}    {"text": "hello"}
    Should Be Refused With    404    GET    /nowhere
    Should Be Refused With    405    PUT    /chat/alice
    Live Count Should Be    0

The Home Page Says How To Use It
    ${page} =    Home Page
    Should Contain    ${page}    curl -d
    Should Contain    ${page}    /chat/alice

The Flight Recorder Knows The Sessions By Name And How It Ended
    Stop Server
    Start Recorded Server
    Say    alice    hello there
    ${sessions} =    Sessions Of The Recording
    Should Be Equal    ${sessions}[name]    chats
    Should Be Equal As Integers    ${sessions}[live]    1
    End All Chats
    Stop Server
    ${end} =    End Of The Recording
    Should Be Equal    ${end}[signal]    SIGTERM


*** Keywords ***
Live Count Should Be
    [Arguments]    ${expected}
    ${count} =    Live Count
    Should Be Equal As Integers    ${count}    ${expected}

Should Be Refused With
    [Arguments]    ${expected}    ${method}    ${path}    ${body}=${EMPTY}
    ${status} =    Refusal Of    ${method}    ${path}    ${body}
    Should Be Equal As Integers    ${status}    ${expected}

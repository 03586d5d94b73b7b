*** Settings ***
Documentation     `floodline serve`, as a process of its own, over HTTP.
Library           driver.SessionService
Library           driver.Commands
Suite Setup       Start Service    --max-history    4    tokens=${TOKENS}
Suite Teardown    Clean Up


*** Variables ***
${ACME}      acme-secret
${OTHER}     other-secret
${ADMIN}     admin-secret
${TOKENS}    acme:${ACME},other:${OTHER},admin:${ADMIN}


*** Test Cases ***
The Log Keeps Every Item And The Window The Newest
    ${chat} =    New Conversation    ${ACME}
    Say    ${chat}    one    two    three    four    five    six    token=${ACME}
    ${texts} =    Texts Of    ${chat}    ${ACME}
    Should Be Equal    ${texts}    ${{["one", "two", "three", "four", "five", "six"]}}
    ${window} =    Window Of    ${chat}    openai    ${ACME}
    Should Be Equal    ${window}    ${{["three", "four", "five", "six"]}}

An Append That Is Sent Again With Its Key Counts Once
    ${chat} =    New Conversation    ${ACME}
    Say    ${chat}    hello    token=${ACME}    key=first
    Say    ${chat}    hello    token=${ACME}    key=first
    ${texts} =    Texts Of    ${chat}    ${ACME}
    Should Be Equal    ${texts}    ${{["hello"]}}
    ${answer} =    Say    ${chat}    something else    token=${ACME}    key=first
    Should Be Equal As Integers    ${answer}[status]    409
    Should Be Equal    ${answer}[headers][x-should-retry]    false

Nobody Sees The Conversations Of Another Tenant But The Administrator Who Lists Them
    ${chat} =    New Conversation    ${ACME}
    ${answer} =    Request    GET    /v1/conversations/${chat}    token=${OTHER}
    Should Be Equal As Integers    ${answer}[status]    404
    ${answer} =    Request    GET    /v1/conversations/${chat}
    Should Be Equal As Integers    ${answer}[status]    401
    ${answer} =    Request    GET    /v1/floodline/conversations?prefix=${chat}    token=${ADMIN}
    Should Be Equal    ${answer}[document][data][0][tenant]    acme

A Session Is Completed And Deleted By The Routes Of The Old Worker
    ${chat} =    New Conversation    ${ACME}
    ${answer} =    Request    POST    /sessions/${chat}/complete    token=${ACME}
    Should Be Equal As Integers    ${answer}[status]    200
    ${answer} =    Request    DELETE    /sessions/${chat}    token=${ACME}
    Should Be Equal As Integers    ${answer}[status]    200
    ${answer} =    Request    GET    /v1/conversations/${chat}    token=${ACME}
    Should Be Equal As Integers    ${answer}[status]    404

Every Acknowledged Item Survives A Kill, And SIGTERM Is An Orderly End
    ${chat} =    New Conversation    ${ACME}
    Say    ${chat}    before the kill    token=${ACME}
    Kill Service
    Start Service    tokens=${TOKENS}
    ${answer} =    Request    GET    /health/ready
    Should Be Equal    ${answer}[document]    ${{{"status": "ok"}}}
    ${texts} =    Texts Of    ${chat}    ${ACME}
    Should Be Equal    ${texts}    ${{["before the kill"]}}
    ${status} =    Stop Service
    Should Be Equal As Integers    ${status}    0

It Does Not Listen To Others Without A Token
    ${answer} =    Floodline    serve    --host    0.0.0.0    --port    0
    Should Be Equal As Integers    ${answer}[status]    2
    Should Contain    ${answer}[err]    token

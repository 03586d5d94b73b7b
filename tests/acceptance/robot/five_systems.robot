*** Settings ***
Documentation     The five systems of the examples, through the commands that a user types.
Library           driver.Commands


*** Variables ***
@{SYSTEMS}    plan_service    session_worker    swarm_caches    stage_pipeline    plugin_host


*** Test Cases ***
Every Leak Is Found Without Running It
    ${files} =    Evaluate    [name + "/leaky.py" for name in $SYSTEMS]
    ${answer} =    Floodline    scan    @{files}    --fail-on    medium
    Should Be Equal As Integers    ${answer}[status]    1
    FOR    ${owner}    IN    PlanService._memories    SessionWorker._sessions
    ...    StatusCache._status    Pipeline._snapshots    Plugin._tasks
        Should Contain    ${answer}[out]    ${owner}
    END

Nothing Is Found In The Fixed Versions
    ${files} =    Evaluate    [name + "/bounded.py" for name in $SYSTEMS]
    ${answer} =    Floodline    scan    @{files}    --fail-on    medium
    Should Be Equal As Integers    ${answer}[status]    0

Four Of Five Announced Fixes Are Refuted
    ${answer} =    Floodline    verify    swarm_caches/announced.toml
    Should Be Equal As Integers    ${answer}[status]    1
    Should Contain    ${answer}[out]    5 claims: 1 proved, 4 refuted

A Demo That Does Not Exist Is Refused With The List
    ${answer} =    Floodline    demo    nothing
    Should Be Equal As Integers    ${answer}[status]    2
    Should Contain    ${answer}[err]    plan_service, session_worker, swarm_caches

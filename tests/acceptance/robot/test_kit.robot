*** Settings ***
Documentation     Another project tests its sessions with the keywords of floodline.
Library           floodline.testing.robot_keywords.SessionKeywords    driver.plan_kit


*** Test Cases ***
Abandoned Sessions Do Not Pile Up
    Open Sessions And Abandon Them    500
    Live Count Stays At Or Below    50

Closed Sessions Leave At Once
    Open Sessions And Close Them    20
    Live Count Stays At Or Below    1

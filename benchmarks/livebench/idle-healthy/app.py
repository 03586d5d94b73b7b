"""Imports much of the standard library and waits."""

import asyncio
import email
import http.server
import json
import sqlite3
import time
import xml.dom.minidom

KEPT = (asyncio, email, http.server, json, sqlite3, xml.dom.minidom)
while True:
    time.sleep(1)

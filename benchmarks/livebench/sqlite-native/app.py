"""Rows in a database in memory: SQLite has them, and no Python object grows."""

import itertools
import sqlite3
import time

database = sqlite3.connect(":memory:")
database.execute("create table log (number integer, text text)")
for number in itertools.count():
    database.execute("insert into log values (?, ?)", (number, "x" * 3000))
    database.commit()
    time.sleep(0.02)

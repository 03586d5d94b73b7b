"""A session of SQLAlchemy that is never closed, and whose rows somebody keeps."""

import itertools
import time

from sqlalchemy import Column, Integer, String, create_engine
from sqlalchemy.orm import Session, declarative_base

Base = declarative_base()


class Order(Base):
    __tablename__ = "orders"
    id = Column(Integer, primary_key=True)
    text = Column(String)


engine = create_engine("sqlite://")
Base.metadata.create_all(engine)
session = Session(engine)
kept = []
for number in itertools.count():
    order = Order(text=f"order {number}")
    session.add(order)
    session.commit()
    kept.append(order)
    time.sleep(0.05)

"""Rows that wait until there are enough of them."""


class Batches:
    def __init__(self, most):
        self.most, self.rows = most, []

    def add(self, row):
        self.rows.append(row)

    def is_full(self):
        return len(self.rows) >= self.most

    def take(self):
        rows, self.rows = self.rows, []
        return rows

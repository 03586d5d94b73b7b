"""How an answer is shown: its text, and pages of HTML with charts; standard library only."""

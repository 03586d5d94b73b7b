"""What verify answers: verdicts and causes, their sentences, and how they are printed."""

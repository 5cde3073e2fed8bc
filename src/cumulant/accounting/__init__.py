"""From parts to answers: the question, the number, what proves it, and how to say it."""

"""What ran: one class one file, each frozen data with a curve and, if it has one, a dominating pair."""

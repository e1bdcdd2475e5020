"""The server of a campaign: the annotators' page, the researcher's page, and the routes behind them."""

"""Platforms that send people to a campaign, and results of Mechanical Turk and Label Studio."""

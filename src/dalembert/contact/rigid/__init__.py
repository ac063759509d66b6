"""Rigid contact and impact as Featherstone 2008 sections 11.1 to 11.7 treat them."""

"""Rigid contact and impact as Featherstone 2008 sections 11.1 to 11.7 treat them."""

from dalembert.contact.rigid.bodies import BodyContact, body_contact, body_contacts, contact_normal
from dalembert.contact.rigid.collisions import (
    Collision,
    body_impulse,
    collide_bodies,
    collide_bodies_sticking,
)
from dalembert.contact.rigid.lcp import ComplementaritySolution, independent_columns, solve_lcp
from dalembert.contact.rigid.quadratic_programs import LeastConstraint, least_constraint, solve_force_qp

__all__ = [
    "BodyContact",
    "Collision",
    "ComplementaritySolution",
    "LeastConstraint",
    "body_contact",
    "body_contacts",
    "body_impulse",
    "collide_bodies",
    "collide_bodies_sticking",
    "contact_normal",
    "independent_columns",
    "least_constraint",
    "solve_force_qp",
    "solve_lcp",
]

"""Rigid contact and impact as Featherstone 2008 sections 11.1 to 11.7 treat them."""

from dalembert.contact.rigid.bodies import BodyContact, body_contact, body_contacts, contact_normal
from dalembert.contact.rigid.collisions import (
    Collision,
    body_impulse,
    collide_bodies,
    collide_bodies_sticking,
)
from dalembert.contact.rigid.contact_solvers import RigidSolver, SpringDamper, StepSolver, contact_dynamics
from dalembert.contact.rigid.dense_steps import DenseStep, dense_step, fitted_step
from dalembert.contact.rigid.equations import ContactEquations, PointContact, contact_equations
from dalembert.contact.rigid.event_driven import ContactEvent, EventDrivenMotion, simulate_events
from dalembert.contact.rigid.features import EdgeEdge, VertexFace, feature_gaps
from dalembert.contact.rigid.gaps import ContactState, GapFunction, contact_states, shape_gaps
from dalembert.contact.rigid.impacts import Impact, apply_impulse, body_mobility, collide, collide_sticking
from dalembert.contact.rigid.lcp import ComplementaritySolution, solve_lcp
from dalembert.contact.rigid.quadratic_programs import LeastConstraint, least_constraint, solve_force_qp
from dalembert.contact.rigid.reduction import disc_contacts, reduce_contacts

__all__ = [
    "BodyContact",
    "Collision",
    "ComplementaritySolution",
    "ContactEquations",
    "ContactEvent",
    "ContactState",
    "DenseStep",
    "EdgeEdge",
    "EventDrivenMotion",
    "GapFunction",
    "Impact",
    "LeastConstraint",
    "PointContact",
    "RigidSolver",
    "SpringDamper",
    "StepSolver",
    "VertexFace",
    "apply_impulse",
    "body_contact",
    "body_contacts",
    "body_impulse",
    "body_mobility",
    "collide",
    "collide_bodies",
    "collide_bodies_sticking",
    "collide_sticking",
    "contact_dynamics",
    "contact_equations",
    "contact_normal",
    "contact_states",
    "dense_step",
    "disc_contacts",
    "feature_gaps",
    "fitted_step",
    "least_constraint",
    "reduce_contacts",
    "shape_gaps",
    "simulate_events",
    "solve_force_qp",
    "solve_lcp",
]

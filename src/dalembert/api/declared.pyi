"""Written by `make api`; do not edit."""

from collections.abc import Collection
from typing import Literal

from dalembert.api.calls import Array, ArrayLike, Check, ForceFrame
from dalembert.api.records import FloatingBaseEquations, HybridDynamicsDerivatives, Poses
from dalembert.model.model import Model

def actuator_forces(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    ctrl: ArrayLike,
    *,
    time: ArrayLike | None = None,
    out: Array | None = None,
    check: Check = None,
) -> Array:
    """Compute the joint forces tau `(…, nv)` [N m or N] of the actuators, for control signals `(…, nu)`."""

def base_wrench(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    external_forces: ArrayLike | None = None,
    *,
    external_frame: ForceFrame = "body",
    time: ArrayLike | None = None,
    out: Array | None = None,
    check: Check = None,
) -> Array:
    """Return the base wrench (n, f) = d/dt (momentum) - weight - external forces `(…, 6)` [N m, N]."""

def bias_forces(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    external_forces: ArrayLike | None = None,
    *,
    external_frame: ForceFrame = "body",
    time: ArrayLike | None = None,
    out: Array | None = None,
    check: Check = None,
) -> Array:
    """Compute b(q, v) = inverse_dynamics(q, v, 0) `(…, nv)` [N m or N], velocity terms and gravity."""

def body_torques(
    model: Model,
    q: ArrayLike,
    joint_torques: ArrayLike,
    *,
    time: ArrayLike | None = None,
    out: Array | None = None,
    check: Check = None,
) -> Array:
    """Return the torques tau' = (R^T D)^T tau^ `(…, n_bodies, 3)` [N m] of joint torques on the bodies."""

def cartesian_forces(
    model: Model,
    q: ArrayLike,
    tau: ArrayLike,
    *,
    time: ArrayLike | None = None,
    out: Array | None = None,
    check: Check = None,
) -> Array:
    """Return torques and forces (tau_k, f_k) = (J^T)^+ Q on all bodies `(…, n_bodies, 6)` [N m, N]."""

def cartesian_forces_at_points(
    model: Model,
    q: ArrayLike,
    tau: ArrayLike,
    points: ArrayLike,
    *,
    time: ArrayLike | None = None,
    out: tuple[Array, ...] | None = None,
    check: Check = None,
) -> tuple[Array, Array]:
    """Return forces f_k at given points and joint torques tau^_k `(…, n_bodies, 3)` [N, N m] that equal tau."""

def center_of_mass(
    model: Model,
    q: ArrayLike,
    *,
    time: ArrayLike | None = None,
    out: Array | None = None,
    check: Check = None,
) -> Array:
    """Compute the system's centre of mass c = sum m_i c_i / sum m_i `(…, 3)` [m] in world coordinates."""

def centroidal_momentum(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    *,
    time: ArrayLike | None = None,
    out: Array | None = None,
    check: Check = None,
) -> Array:
    """Compute the momentum h = sum I_i v_i `(…, 6)` about the centre of mass, in world axes."""

def centroidal_momentum_matrix(
    model: Model,
    q: ArrayLike,
    *,
    time: ArrayLike | None = None,
    out: Array | None = None,
    check: Check = None,
) -> Array:
    """Compute the matrix A(q) `(…, 6, nv)` of the centroidal momentum h = A v."""

def christoffel_symbols(
    model: Model,
    q: ArrayLike,
    *,
    kind: Literal["first", "second"] = "first",
    method: str | None = None,
    out: Array | None = None,
    check: Check = None,
) -> Array:
    """Compute Gamma_ij,k = (dM_ik/dq_j + dM_jk/dq_i - dM_ij/dq_k) / 2 `(…, nv, nv, nv)`, indices i, j, k."""

def connection_term(
    model: Model, q: ArrayLike, v: ArrayLike, u: ArrayLike, *, out: Array | None = None, check: Check = None
) -> Array:
    """Compute Gamma_ij^k v_i u_j = M^-1 C(q, v) u `(…, nv)`, the connection's part of nabla_v u."""

def consistent_inverse(
    model: Model,
    q: ArrayLike,
    frame_name: str,
    *,
    rotation: bool = True,
    position: bool = True,
    time: ArrayLike | None = None,
    out: Array | None = None,
    check: Check = None,
) -> Array:
    """Compute the dynamically consistent inverse J# = M^-1 J^T Lambda `(…, nv, m)` of a frame's Jacobian."""

def constraint_bias(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    *,
    time: ArrayLike | None = None,
    out: Array | None = None,
    check: Check = None,
) -> Array:
    """Compute the velocity-product term k(q, v) = -K' v `(…, nc)` of K a = k."""

def constraint_error(
    model: Model,
    q: ArrayLike,
    *,
    time: ArrayLike | None = None,
    out: Array | None = None,
    check: Check = None,
) -> Array:
    """Compute the position error delta(q) `(…, nc)` [rad or m] of loops and user constraints."""

def constraint_forces(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    external_forces: ArrayLike | None = None,
    *,
    external_frame: ForceFrame = "body",
    stabilization: ArrayLike | None = None,
    time: ArrayLike | None = None,
    out: Array | None = None,
    check: Check = None,
) -> Array:
    """Return lambda `(…, nc)` of the constraint forces K^T lambda in the motion that tau produces."""

def constraint_jacobian(
    model: Model,
    q: ArrayLike,
    *,
    time: ArrayLike | None = None,
    out: Array | None = None,
    check: Check = None,
) -> Array:
    """Compute the constraint Jacobian K(q) `(…, nc, nv)` of K v = 0 (or a prescribed rate) and K a = k."""

def coriolis_forces(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    *,
    time: ArrayLike | None = None,
    out: Array | None = None,
    check: Check = None,
) -> Array:
    """Compute c(q, v) = inverse_dynamics(q, v, 0) - inverse_dynamics(q, 0, 0) `(…, nv)` [N m or N]."""

def coriolis_matrix(
    model: Model, q: ArrayLike, v: ArrayLike, *, out: Array | None = None, check: Check = None
) -> Array:
    """Compute the Coriolis matrix C(q, v) `(…, nv, nv)` of M a + C v + g = tau."""

def coriolis_product(
    model: Model, q: ArrayLike, v: ArrayLike, w: ArrayLike, *, out: Array | None = None, check: Check = None
) -> Array:
    """Compute C(q, v) w `(…, nv)` [N m or N] in linear time, without forming C."""

def difference(
    model: Model, q0: ArrayLike, q1: ArrayLike, *, out: Array | None = None, check: Check = None
) -> Array:
    """Return the displacement dv `(…, nv)` [rad or m] at q0 with `integrate(model, q0, dv) = q1`."""

def feedback_linearization(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    q_ref: ArrayLike,
    v_ref: ArrayLike | None = None,
    a_ref: ArrayLike | None = None,
    *,
    stiffness: ArrayLike,
    damping: ArrayLike | None = None,
    time: ArrayLike | None = None,
    out: Array | None = None,
    check: Check = None,
) -> Array:
    """Compute tau = b + M a* `(…, nv)` [N m or N], with which the error e obeys e'' + B e' + K e = 0."""

def floating_base_equations(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    external_forces: ArrayLike | None = None,
    *,
    external_frame: ForceFrame = "body",
    time: ArrayLike | None = None,
    out: tuple[Array, ...] | None = None,
    check: Check = None,
) -> FloatingBaseEquations:
    """Compute the coefficients of [[I_0, F], [F^T, H]] (a_0, a_joints) + (p_0, C) = (f_0, tau)."""

def floating_base_inverse_dynamics(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    a_joints: ArrayLike,
    external_forces: ArrayLike | None = None,
    *,
    external_frame: ForceFrame = "body",
    gravity: Literal["forces", "acceleration"] = "forces",
    time: ArrayLike | None = None,
    out: tuple[Array, ...] | None = None,
    check: Check = None,
) -> tuple[Array, Array]:
    """Compute the base acceleration a_0 = -(I_0^c)^-1 p_0^c and the joint forces from joint accelerations."""

def floating_base_jacobian(
    model: Model,
    q: ArrayLike,
    frame_name: str,
    *,
    frame: Literal["world_aligned", "body", "world"] = "world_aligned",
    time: ArrayLike | None = None,
    out: Array | None = None,
    check: Check = None,
) -> Array:
    """Compute the free-flight Jacobian J^f = J - X (I_0^c)^-1 F `(…, 6, nv - 6)` of a body or frame."""

def fluid_forces(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    *,
    time: ArrayLike | None = None,
    out: Array | None = None,
    check: Check = None,
) -> Array:
    """Compute the joint forces tau_f = sum J^T f(J v - wind) `(…, nv)` [N m or N] of the fluid on the bodies."""

def forward_dynamics(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    external_forces: ArrayLike | None = None,
    *,
    external_frame: ForceFrame = "body",
    method: str | None = None,
    stabilization: ArrayLike | None = None,
    time: ArrayLike | None = None,
    out: Array | None = None,
    check: Check = None,
) -> Array:
    """Solve M(q) a + b(q, v) = tau + J^T external for a = dv/dt `(…, nv)` [rad/s^2 or m/s^2]."""

def forward_dynamics_derivatives(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    external_forces: ArrayLike | None = None,
    *,
    external_frame: ForceFrame = "body",
    method: str | None = None,
    stabilization: ArrayLike | None = None,
    time: ArrayLike | None = None,
    out: tuple[Array, ...] | None = None,
    check: Check = None,
) -> tuple[Array, Array, Array]:
    """Return (da/dq, da/dv, da/dtau) of a = FD(q, v, tau), `(…, nv, nv)` each, from one kernel."""

def forward_kinematics(
    model: Model,
    q: ArrayLike,
    *,
    time: ArrayLike | None = None,
    out: tuple[Array, ...] | None = None,
    check: Check = None,
) -> Poses:
    """Compute the poses of all bodies in the world: X_i = X_parent(i) X_T X_J(q_i), from the root outward."""

def generalized_force(
    model: Model,
    q: ArrayLike,
    forces: ArrayLike | None = None,
    *,
    points: ArrayLike | None = None,
    torques: ArrayLike | None = None,
    joint_torques: ArrayLike | None = None,
    time: ArrayLike | None = None,
    out: Array | None = None,
    check: Check = None,
) -> Array:
    """Compute Q = sum J'_v^T f_k + J_omega^T tau'_k + J^_omega^T tau^_k `(…, nv)` [N m or N]."""

def generalized_velocity(
    model: Model,
    q: ArrayLike,
    body_velocities: ArrayLike,
    *,
    method: str | None = None,
    time: ArrayLike | None = None,
    out: tuple[Array, ...] | None = None,
    check: Check = None,
) -> tuple[Array, Array]:
    """Return v = J^+ V `(…, nv)` and the residual V - J v `(…, n_bodies, 6)` for given body velocities V."""

def geodesic_acceleration(
    model: Model, q: ArrayLike, v: ArrayLike, *, out: Array | None = None, check: Check = None
) -> Array:
    """Compute dv/dt = -M^-1 C(q, v) v `(…, nv)` [rad/s^2 or m/s^2], the motion without forces and gravity."""

def gravity_compensation(
    model: Model,
    q: ArrayLike,
    *,
    time: ArrayLike | None = None,
    out: Array | None = None,
    check: Check = None,
) -> Array:
    """Compute tau = g(q) = +dV/dq `(…, nv)` [N m or N], which holds the system at rest in any configuration."""

def gravity_forces(
    model: Model,
    q: ArrayLike,
    *,
    time: ArrayLike | None = None,
    out: Array | None = None,
    check: Check = None,
) -> Array:
    """Compute the gravity forces g(q) = inverse_dynamics(q, 0, 0) = +dV/dq `(…, nv)` [N m or N]."""

def hamiltonian(
    model: Model, q: ArrayLike, p: ArrayLike, *, out: Array | None = None, check: Check = None
) -> Array:
    """Compute the Hamiltonian H(q, p) = p^T M(q)^-1 p / 2 + V(q) `(…)` [J] for momenta p `(…, nv)`."""

def hamiltonian_rates(
    model: Model,
    q: ArrayLike,
    p: ArrayLike,
    tau: ArrayLike,
    external_forces: ArrayLike | None = None,
    *,
    external_frame: ForceFrame = "body",
    out: tuple[Array, ...] | None = None,
    check: Check = None,
) -> tuple[Array, Array]:
    """Compute (v, dp/dt), `(…, nv)` each, of Hamilton's equations: v = dH/dp = M^-1 p, dp/dt = -dH/dq + tau."""

def hybrid_dynamics(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    a: ArrayLike,
    external_forces: ArrayLike | None = None,
    *,
    external_frame: ForceFrame = "body",
    prescribed: Collection[str] = (),
    method: str | None = None,
    stabilization: ArrayLike | None = None,
    time: ArrayLike | None = None,
    out: tuple[Array, ...] | None = None,
    check: Check = None,
) -> tuple[Array, Array]:
    """Solve M(q) a + b(q, v) = tau + J^T external for a at the free joints and tau at the prescribed ones."""

def hybrid_dynamics_derivatives(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    a: ArrayLike,
    prescribed: Collection[str],
    external_forces: ArrayLike | None = None,
    *,
    external_frame: ForceFrame = "body",
    stabilization: ArrayLike | None = None,
    time: ArrayLike | None = None,
    out: tuple[Array, ...] | None = None,
    check: Check = None,
) -> HybridDynamicsDerivatives:
    """Return the derivatives of (a, tau) = `hybrid_dynamics`, eight matrices `(…, nv, nv)` from one kernel."""

def inertial_forces(
    model: Model,
    q: ArrayLike,
    a: ArrayLike,
    *,
    time: ArrayLike | None = None,
    out: Array | None = None,
    check: Check = None,
) -> Array:
    """Compute tau = M(q) a `(…, nv)` [N m or N] in linear time, without forming M."""

def inner_product(
    model: Model,
    q: ArrayLike,
    u: ArrayLike,
    w: ArrayLike,
    *,
    space: Literal["tangent", "cotangent"] = "tangent",
    out: Array | None = None,
    check: Check = None,
) -> Array:
    """Compute the inner product <u, w> = u^T M(q) w `(…)` of two velocities `(…, nv)`."""

def integrate(
    model: Model, q: ArrayLike, dv: ArrayLike, *, out: Array | None = None, check: Check = None
) -> Array:
    """Return the configuration q exp(dv) `(…, nq)`: q moved for unit time at the velocity dv. Pass `v * dt`."""

def inverse_dynamics(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    external_forces: ArrayLike | None = None,
    *,
    external_frame: ForceFrame = "body",
    method: str | None = None,
    time: ArrayLike | None = None,
    out: Array | None = None,
    check: Check = None,
) -> Array:
    """Solve M(q) a + b(q, v) = tau + J^T external for tau `(…, nv)` [N m or N]."""

def inverse_dynamics_derivatives(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    external_forces: ArrayLike | None = None,
    *,
    external_frame: ForceFrame = "body",
    method: str | None = None,
    time: ArrayLike | None = None,
    out: tuple[Array, ...] | None = None,
    check: Check = None,
) -> tuple[Array, Array, Array]:
    """Return (dtau/dq, dtau/dv, dtau/da) of tau = ID(q, v, a), `(…, nv, nv)` each, from one kernel."""

def inverse_dynamics_regressor(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    *,
    armature: bool = False,
    time: ArrayLike | None = None,
    out: Array | None = None,
    check: Check = None,
) -> Array:
    """Compute the regressor Y(q, v, a) `(…, nv, 10 n_bodies)` of inverse dynamics, tau = Y pi."""

def inverse_mass_matrix(
    model: Model,
    q: ArrayLike,
    *,
    time: ArrayLike | None = None,
    out: Array | None = None,
    check: Check = None,
) -> Array:
    """Compute M(q)^-1 = L^-1 D^-1 L^-T `(…, nv, nv)` from the sparse factors M = L^T D L."""

def jacobian(
    model: Model,
    q: ArrayLike,
    frame_name: str,
    *,
    frame: Literal["world_aligned", "body", "world"] = "world_aligned",
    time: ArrayLike | None = None,
    out: Array | None = None,
    check: Check = None,
) -> Array:
    """Compute the Jacobian J(q) `(…, 6, nv)` of a body or frame: (omega, velocity) = J v, angular first."""

def jacobian_rate(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    frame_name: str,
    *,
    frame: Literal["world_aligned", "body", "world"] = "world_aligned",
    time: ArrayLike | None = None,
    out: Array | None = None,
    check: Check = None,
) -> Array:
    """Compute dJ/dt `(…, 6, nv)` along the motion v, in the frame of `jacobian`."""

def joint_torques(
    model: Model,
    q: ArrayLike,
    tau: ArrayLike,
    *,
    time: ArrayLike | None = None,
    out: tuple[Array, ...] | None = None,
    check: Check = None,
) -> tuple[Array, Array]:
    """Return the joint torques tau^_k = (J^_omega,k^T)^+ Q_k `(…, n_bodies, 3)` [N m] and the rest `(…, nv)`."""

def kinetic_energy(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    *,
    time: ArrayLike | None = None,
    out: Array | None = None,
    check: Check = None,
) -> Array:
    """Compute the kinetic energy T = v^T M v / 2 = sum v_i . I_i v_i / 2 `(…)` [J], including armatures."""

def kinetic_energy_regressor(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    *,
    armature: bool = False,
    time: ArrayLike | None = None,
    out: Array | None = None,
    check: Check = None,
) -> Array:
    """Compute the regressor y(q, v) `(…, 10 n_bodies)` of the kinetic energy T = y . pi [J]."""

def loop_forces(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    external_forces: ArrayLike | None = None,
    *,
    external_frame: ForceFrame = "body",
    stabilization: ArrayLike | None = None,
    time: ArrayLike | None = None,
    out: Array | None = None,
    check: Check = None,
) -> Array:
    """Return f = T lambda of each loop joint `(…, n_loops, 6)` [N m, N]: moment and force on its successor."""

def mass_matrix(
    model: Model,
    q: ArrayLike,
    *,
    method: str | None = None,
    time: ArrayLike | None = None,
    out: Array | None = None,
    check: Check = None,
) -> Array:
    """Compute the joint-space inertia M(q) = sum J_i^T I_i J_i + armature `(…, nv, nv)`."""

def mass_matrix_rate(
    model: Model, q: ArrayLike, v: ArrayLike, *, out: Array | None = None, check: Check = None
) -> Array:
    """Compute dM/dt `(…, nv, nv)` [kg m^2/s, kg m/s or kg/s] along the motion v."""

def maximal_jacobians(
    model: Model,
    q: ArrayLike,
    *,
    time: ArrayLike | None = None,
    out: Array | None = None,
    check: Check = None,
) -> Array:
    """Return the Jacobians J_k(q) `(…, n_bodies, 6, nv)` with `maximal_velocities` = J v."""

def maximal_velocities(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    *,
    time: ArrayLike | None = None,
    out: Array | None = None,
    check: Check = None,
) -> Array:
    """Return the velocities V_k = (omega_k, v_k) = J_k v of all bodies `(…, n_bodies, 6)` [rad/s, m/s]."""

def momentum_coordinates(
    model: Model, q: ArrayLike, v: ArrayLike, *, out: Array | None = None, check: Check = None
) -> Array:
    """Compute the momenta p = M(q) v `(…, nv)` [kg m^2/s or kg m/s] in linear time."""

def normalize(model: Model, q: ArrayLike, *, out: Array | None = None, check: Check = None) -> Array:
    """Return q `(…, nq)` with its quaternions scaled to unit norm, p' = p / |p|; nothing else changes."""

def operational_inertia(
    model: Model,
    q: ArrayLike,
    frame_name: str,
    *,
    rotation: bool = True,
    position: bool = True,
    time: ArrayLike | None = None,
    out: Array | None = None,
    check: Check = None,
) -> Array:
    """Compute the operational-space inertia Lambda = (J M^-1 J^T)^-1 `(…, m, m)` of a frame."""

def passive_forces(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    *,
    time: ArrayLike | None = None,
    out: Array | None = None,
    check: Check = None,
) -> Array:
    """Compute tau_p = -k (q - q_rest) - d v - f sign(v) - sum J^T T `(…, nv)` [N m or N]."""

def pd(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    q_ref: ArrayLike,
    v_ref: ArrayLike | None = None,
    *,
    kp: ArrayLike,
    kd: ArrayLike,
    effort: ArrayLike | None = None,
    out: Array | None = None,
    check: Check = None,
) -> Array:
    """Compute tau = kp (q_ref - q) + kd (v_ref - v) `(…, nv)` [N m or N], limited to ± effort."""

def point_motion(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    frame_name: str,
    *,
    time: ArrayLike | None = None,
    out: tuple[Array, ...] | None = None,
    check: Check = None,
) -> tuple[Array, Array, Array]:
    """Compute position p, velocity dp/dt and acceleration d²p/dt² of a frame's origin, `(…, 3)` each."""

def posture_forces(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    q_ref: ArrayLike,
    *,
    stiffness: ArrayLike,
    damping: ArrayLike | None = None,
    time: ArrayLike | None = None,
    out: Array | None = None,
    check: Check = None,
) -> Array:
    """Compute tau_0 = M a* `(…, nv)` [N m or N]: `feedback_linearization` without the bias forces b."""

def potential_energy(
    model: Model,
    q: ArrayLike,
    *,
    time: ArrayLike | None = None,
    out: Array | None = None,
    check: Check = None,
) -> Array:
    """Compute the potential energy V = -sum m_i g . c_i `(…)` [J]."""

def potential_energy_regressor(
    model: Model,
    q: ArrayLike,
    *,
    armature: bool = False,
    time: ArrayLike | None = None,
    out: Array | None = None,
    check: Check = None,
) -> Array:
    """Compute the regressor y(q) `(…, 10 n_bodies)` of the potential energy V = y . pi [J]."""

def spring_lengths(
    model: Model,
    q: ArrayLike,
    *,
    time: ArrayLike | None = None,
    out: Array | None = None,
    check: Check = None,
) -> Array:
    """Compute the lengths `(…, n_springs)` [m] of the paths of `model.springs`, those of a file's tendons."""

def stable_pd(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    q_ref: ArrayLike,
    v_ref: ArrayLike | None = None,
    *,
    kp: ArrayLike,
    kd: ArrayLike,
    dt: ArrayLike,
    effort: ArrayLike | None = None,
    time: ArrayLike | None = None,
    out: Array | None = None,
    check: Check = None,
) -> Array:
    """Compute tau = kp (q_ref - q') + kd (v_ref - v') `(…, nv)` [N m or N], q' and v' after a step dt [s]."""

def velocity_coordinates(
    model: Model, q: ArrayLike, p: ArrayLike, *, out: Array | None = None, check: Check = None
) -> Array:
    """Compute the velocities v = M(q)^-1 p `(…, nv)` [rad/s or m/s], the inverse of `momentum_coordinates`."""

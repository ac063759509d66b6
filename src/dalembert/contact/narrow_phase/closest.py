"""The dispatch table of pairs of shapes, and nearest points by it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Final

from dalembert.contact.narrow_phase.boxes import box_box
from dalembert.contact.narrow_phase.candidates import ContactPoint, choose, flip
from dalembert.contact.narrow_phase.convex_pairs import convex_convex, flat_flat
from dalembert.contact.narrow_phase.forms import (
    BoxForm,
    CylinderForm,
    EllipsoidForm,
    Form,
    MeshForm,
    RoundedForm,
    SphereForm,
)
from dalembert.contact.narrow_phase.grounds import (
    GROUND_CONTACT_SHAPES,
    MAX_GROUND_VERTICES,
    height_field_solid,
    plane_solid,
)
from dalembert.contact.narrow_phase.rounded_shapes import (
    capsule_box,
    capsule_capsule,
    sphere_box,
    sphere_capsule,
    sphere_sphere,
)
from dalembert.errors import ModelError
from dalembert.model.shapes import (
    Box,
    Capsule,
    ConvexMesh,
    Cylinder,
    Ellipsoid,
    HeightField,
    Plane,
    Shape,
    Sphere,
)
from dalembert.spatial import Transform

Between = Callable[..., list[ContactPoint]]

ROUNDED: Final = (Sphere, Capsule)
FLAT: Final = (Box, Cylinder, ConvexMesh)
FLAT_FORMS: Final = (BoxForm, CylinderForm, MeshForm)

TABLE: Final[dict[tuple[type[Shape | Form], type[Shape | Form]], Between]] = {
    **{(Plane, kind): plane_solid for kind in GROUND_CONTACT_SHAPES},
    **{(HeightField, kind): height_field_solid for kind in GROUND_CONTACT_SHAPES},
    (Sphere, Sphere): sphere_sphere,
    (Sphere, Capsule): sphere_capsule,
    (Sphere, Box): sphere_box,
    (Capsule, Capsule): capsule_capsule,
    (Capsule, Box): capsule_box,
    (Box, Box): box_box,
    **{(kind, Ellipsoid): convex_convex for kind in (*ROUNDED, Ellipsoid, *FLAT)},
    **{(kind, flat): convex_convex for flat in (Cylinder, ConvexMesh) for kind in ROUNDED},
    **{(kind, flat): flat_flat for flat in (Cylinder, ConvexMesh) for kind in (Box, flat)},
    (Cylinder, ConvexMesh): flat_flat,
    (SphereForm, SphereForm): sphere_sphere,
    (SphereForm, RoundedForm): sphere_capsule,
    (SphereForm, BoxForm): sphere_box,
    (RoundedForm, RoundedForm): capsule_capsule,
    (RoundedForm, BoxForm): capsule_box,
    (BoxForm, BoxForm): box_box,
    **{(form, EllipsoidForm): convex_convex for form in (RoundedForm, EllipsoidForm, *FLAT_FORMS)},
    **{(RoundedForm, form): convex_convex for form in (CylinderForm, MeshForm)},
    **{(form, flat): flat_flat for flat in (CylinderForm, MeshForm) for form in (BoxForm, flat)},
    (CylinderForm, MeshForm): flat_flat,
}


def closest_points(a: Shape | Form, X_a: Transform, b: Shape | Form, X_b: Transform) -> list[ContactPoint]:
    """Return the points where the surfaces of shapes a and b are nearest, in world coordinates.

    X_a, X_b: the shapes' own frames in the world (`shape.placement` counts already). Each point has the unit
    normal from a's surface to b's and the gap [m] between them, negative where they overlap. Points that a
    configuration does not have are there too, with the gap `ABSENT_POINT_GAP`.

    >>> from dalembert.contact.narrow_phase import closest_points
    >>> above = da.Transform.from_rotation_translation(np.eye(3), [0.3, 0.0, 1.5])
    >>> point, = closest_points(da.shapes.Plane(), da.Transform.identity(), da.shapes.Sphere(0.5), above)
    >>> point.gap, point.normal.to_list(), point.position.to_list()
    (1.0, [0.0, 0.0, 1.0], [0.3, 0.0, 0.5])
    """
    straight = TABLE.get((type(a), type(b)))
    if straight is not None:
        return straight(a, X_a, b, X_b)
    swapped = TABLE.get((type(b), type(a)))
    if swapped is None:
        raise ModelError(
            f"{_describe(a)} and {_describe(b)} have no contact points; nothing computes where they touch"
        )
    return [flip(point) for point in swapped(b, X_b, a, X_a)]


def nearest_point(a: Shape, X_a: Transform, b: Shape, X_b: Transform) -> ContactPoint:
    """Return the point of `closest_points` with the least gap; for boxes that are apart, their nearest
    points, which need not be on faces that face each other.
    """
    points = closest_points(a, X_a, b, X_b)
    best = points[0]
    for point in points[1:]:
        best = choose(point.gap < best.gap, point, best)
    if isinstance(a, Box) and isinstance(b, Box):
        (apart,) = convex_convex(a, X_a, b, X_b)
        best = choose(apart.gap > 0.0, apart, best)
    return best


def can_touch(a: Shape, b: Shape) -> bool:
    """Return whether shapes of these kinds can be in contact; two half spaces, for example, cannot."""
    return (type(a), type(b)) in TABLE or (type(b), type(a)) in TABLE


def point_count(a: Shape, b: Shape) -> int:
    """Return the number of points that `closest_points` gives for the two shapes.

    Meshes of more vertices than touch a ground one by one have as many points as the smallest of them, whose
    points take a twentieth of the time of a mesh of 256 vertices.
    """
    apart = Transform.identity()
    return len(closest_points(_small(a), apart, _small(b), apart))


def _small(shape: Shape) -> Shape:
    """Return a small mesh in place of one whose number of vertices does not matter."""
    if isinstance(shape, ConvexMesh) and len(shape.vertices) > MAX_GROUND_VERTICES:
        return _smallest_mesh()
    return shape


@cache
def _smallest_mesh() -> ConvexMesh:
    """Return a mesh of one vertex more than touch a ground one by one, on a parabola in space."""
    return ConvexMesh([(0.1 * k, 0.01 * k**2, 0.001 * k**3) for k in range(MAX_GROUND_VERTICES + 1)])


def _describe(shape: Shape | Form) -> str:
    return f"a {shape.kind}" if isinstance(shape, Shape) else type(shape).__name__

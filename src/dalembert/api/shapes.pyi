"""Written by `make api`; do not edit."""

from dalembert.model.shapes.convex_hull import ConvexMesh as ConvexMesh
from dalembert.model.shapes.primitives import Box as Box
from dalembert.model.shapes.primitives import Capsule as Capsule
from dalembert.model.shapes.primitives import Cylinder as Cylinder
from dalembert.model.shapes.primitives import Ellipsoid as Ellipsoid
from dalembert.model.shapes.primitives import HeightField as HeightField
from dalembert.model.shapes.primitives import Mesh as Mesh
from dalembert.model.shapes.primitives import Plane as Plane
from dalembert.model.shapes.primitives import Sphere as Sphere
from dalembert.model.shapes.shape import Shape as Shape
from dalembert.model.shapes.shape import Solid as Solid

"""Written by `make api`; do not edit."""

from dalembert.model.shapes.convex_hull import ConvexMesh as ConvexMesh
from dalembert.model.shapes.shape import Box as Box
from dalembert.model.shapes.shape import Capsule as Capsule
from dalembert.model.shapes.shape import Cylinder as Cylinder
from dalembert.model.shapes.shape import Ellipsoid as Ellipsoid
from dalembert.model.shapes.shape import HeightField as HeightField
from dalembert.model.shapes.shape import Mesh as Mesh
from dalembert.model.shapes.shape import Plane as Plane
from dalembert.model.shapes.shape import Shape as Shape
from dalembert.model.shapes.shape import Solid as Solid
from dalembert.model.shapes.shape import Sphere as Sphere

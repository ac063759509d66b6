"""Written by `make api`; do not edit."""

from dalembert.model.shapes import Box as Box
from dalembert.model.shapes import Capsule as Capsule
from dalembert.model.shapes import ConvexMesh as ConvexMesh
from dalembert.model.shapes import Cylinder as Cylinder
from dalembert.model.shapes import Ellipsoid as Ellipsoid
from dalembert.model.shapes import HeightField as HeightField
from dalembert.model.shapes import Mesh as Mesh
from dalembert.model.shapes import Plane as Plane
from dalembert.model.shapes import Shape as Shape
from dalembert.model.shapes import Solid as Solid
from dalembert.model.shapes import Sphere as Sphere

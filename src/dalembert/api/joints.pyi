"""Written by `make api`; do not edit."""

from dalembert.model.joints import Composite as Composite
from dalembert.model.joints import Cylindrical as Cylindrical
from dalembert.model.joints import EllipsoidJoint as EllipsoidJoint
from dalembert.model.joints import Helical as Helical
from dalembert.model.joints import Joint as Joint
from dalembert.model.joints import Planar as Planar
from dalembert.model.joints import RackPinion as RackPinion
from dalembert.model.joints import Reversed as Reversed
from dalembert.model.joints import SphereInCylinder as SphereInCylinder
from dalembert.model.joints import SphericalEuler as SphericalEuler
from dalembert.model.joints import SphericalExponential as SphericalExponential
from dalembert.model.joints import TimeDependent as TimeDependent
from dalembert.model.joints import Translation as Translation
from dalembert.model.joints import Universal as Universal
from dalembert.model.joints import UserDefined as UserDefined

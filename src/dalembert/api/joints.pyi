"""Written by `make api`; do not edit."""

from dalembert.model.joints.combined import Composite as Composite
from dalembert.model.joints.combined import Reversed as Reversed
from dalembert.model.joints.combined import TimeDependent as TimeDependent
from dalembert.model.joints.combined import UserDefined as UserDefined
from dalembert.model.joints.elementary_joints import Cylindrical as Cylindrical
from dalembert.model.joints.elementary_joints import Helical as Helical
from dalembert.model.joints.elementary_joints import Planar as Planar
from dalembert.model.joints.elementary_joints import SphericalEuler as SphericalEuler
from dalembert.model.joints.elementary_joints import SphericalExponential as SphericalExponential
from dalembert.model.joints.elementary_joints import Translation as Translation
from dalembert.model.joints.elementary_joints import Universal as Universal
from dalembert.model.joints.joint import Joint as Joint
from dalembert.model.joints.rolling import EllipsoidJoint as EllipsoidJoint
from dalembert.model.joints.rolling import RackPinion as RackPinion
from dalembert.model.joints.rolling import SphereInCylinder as SphereInCylinder

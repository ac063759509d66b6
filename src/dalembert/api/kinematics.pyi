"""Written by `make api`; do not edit."""

from dalembert.api.declared import forward_kinematics as forward_kinematics
from dalembert.api.declared import jacobian as jacobian
from dalembert.api.declared import jacobian_rate as jacobian_rate
from dalembert.api.declared import point_motion as point_motion
from dalembert.api.declared import spring_lengths as spring_lengths
from dalembert.api.reaching import InverseKinematics as InverseKinematics
from dalembert.api.reaching import inverse_kinematics as inverse_kinematics
from dalembert.api.records import Pose as Pose
from dalembert.api.records import Poses as Poses

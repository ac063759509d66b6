"""Where two shapes are nearest to each other: points, normals and gaps, on generic scalars."""

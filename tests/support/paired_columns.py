"""Differences between columns of one table, as tests write their answers down."""

from counterfoil.stats.intervals import differences


def difference_interval(values, clusters, pairs, **options):
    return tuple(differences(values.T[:, :, None], clusters, pairs, **options)[1:, :, 0])

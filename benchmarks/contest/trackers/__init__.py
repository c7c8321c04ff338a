"""Methods of the literature that track a subspace, each written from its paper.

    power_method          Mitliagkas, Caramanis & Jain 2013
    frequent_directions   Liberty 2013; Ghashami et al. 2016; robust: Luo et al. 2019
    grouse                Balzano, Nowak & Recht 2010
    spirit                Papadimitriou, Sun & Faloutsos 2005, on PAST (Yang 1995)
    moses                 Eftekhari, Hauser & Grammenos 2018
    oja                   Oja 1982, in blocks
    running_scatter       X'X of all rows, which a narrow stream has room for

Each has `partial_fit(block)` and `basis()`, takes rows as they come, and starts from a seed. They
are here to be compared with; nothing in the product uses them.
"""

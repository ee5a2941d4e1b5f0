"""Code of one thread in a kernel of tiles: what it is made of, and how tiles and threads go together.

`x[tx] = A[tx]` says something for each thread of a block. Runs of such statements become parallel loops over
the block's threads, of which each index is done by the thread of that number; what a thread keeps from one
run to the next is a row of a tile. So everything behind the trace knows loops and tiles alone.
"""

// Package sampler decides the order of rows: pure arithmetic, no I/O, no state that grows with the
// data.
//
// An Order maps a position (a row number that keeps counting through all epochs) to an example of a
// source. Steps deals the order to the ranks of a training run as batches. A position is one
// integer, seeking costs the same anywhere, and the order depends only on the rows of the sources,
// shuffle, seed, bucket and group: batch size, token budget and world may change at any step.
//
// # The order, exactly
//
// This section is normative, so that a reader in another language yields the same rows. All
// arithmetic is on unsigned 64-bit integers that wrap.
//
//	mix64(z): z ^= z>>30; z *= 0xbf58476d1ce4e5b9; z ^= z>>27; z *= 0x94d049bb133111eb; z ^= z>>31
//	fold(h, v) = mix64((h ^ v) + 0x9e3779b97f4a7c15)
//	key(v1, v2, …) = fold(… fold(fold(0, v1), v2) …)
//
// A permutation of n > 1 elements under key k is a generalized Feistel network over a × b cells,
// where a is the least integer with a·a ≥ n and b = ceil(n/a). It has 8 rounds if n ≥ 2^20, else
// 16. To permute i: l = i mod a, r = i div a; in round t = 0, 1, …
//
//	t even: l = (l + (hash(t, r)·a >> 32)) mod a
//	t odd:  r = (r + (hash(t, l)·b >> 32)) mod b
//	hash(t, x) = mix64(x ^ fold(k, t+1)) >> 32
//
// and i becomes r·a + l; while that is not below n, the same is applied to it again (cycle
// walking).
//
// Position p lies in epoch e = p div rows, at i = p mod rows. For source number s of the order (0
// if there is only one):
//
//	none   example i
//	full   example permute(i), n = rows, k = key(seed, 1, s, e)
//	block  the example in blocks of 256 consecutive rows, the last one perhaps shorter, in the order
//	       permute(0), permute(1), … with n = number of blocks, k = key(seed, 2, s, e)
//
// A mix of sources has windows of 1024 positions, numbered c = p div 1024 from the first epoch on.
// Source s has share(s) of them: its weight's part of 1024 rounded down, at least 1. The rest goes
// to the largest remainders, one each (the lower s first among equals); if minimums make the sum
// too large, one at a time is taken from the largest share (the lower s first). With perm = permute
// under n = 1024, k = key(seed, 3, c), the index p mod 1024 belongs to the source in whose run of
// shares perm(p mod 1024) falls. It is that source's row number c·share(s) + (indexes of s before
// it in the window), which keeps counting through the source's own epochs. An epoch of the mix has
// as many positions as all sources have rows.
//
// If the weights of a mix change at positions, positions are cut into pieces at the changes and at
// the beginnings of epochs, and windows start again in each piece: they have 1024 positions, the
// last one of a piece perhaps n < 1024. There, the shares are the parts of n by weight, rounded
// down, and the rest goes to the largest remainders. A source of weight 0 has no share. The
// permutation of a window that begins at position w has its n and k = key(seed, 5, w). The number
// of a source's row in it is the sum of the source's shares in all earlier windows plus the
// source's indexes before it in the window.
//
// Bucketing cuts the positions of an epoch into windows. Let g = min(group, bucket): a window has
// `bucket` rows, rounded up to a multiple of g, the last one perhaps fewer. A window's rows are
// sorted by length, equal lengths in the order they had, and cut into groups of g. The whole groups
// come in the order permute(0), permute(1), … with n = number of whole groups, k = key(seed, 4, e,
// number of the window); the rows that fill no group come after them.
//
// # The end of an epoch
//
// Under Once, if the last step of an epoch has n < batch_size × world rows, rank r gets n div world of
// them, the first n mod world ranks one more, in the order. Every rank that gets one row less also
// gets a filler, which repeats the step's first row. Under a token budget the ranks cut batches as in
// any other step, and under balance the n rows are dealt as below; there, only a rank without a row
// gets a filler.
//
// # Balance, exactly
//
// A balanced step deals the n rows that its ranks get without balance, in the order of the ranks.
// They make G = min(world, n) groups, and group g goes to rank (g + mix64(p) mod G) mod G, where p
// is the position at which the step begins. Rows within a batch keep their order. The rows are
// sorted by length, longest first, equal lengths in the order they had. Lengths above 2^21 count as
// 2^21 when squared.
//
// Quadratic without a token budget: each row in turn goes to the group with the least sum of
// squares among those that are not full, the lowest among equals. A group is full with n div G
// rows, the first n mod G groups with one more.
//
// Otherwise the sorted rows are cut into G runs, group 0 first. The cost of a run is its rows times
// its padded longest row, or its sum of squares. Under a token budget a run has at most batch_size
// rows, and rows × padded longest stays within the budget.
//
//  1. C is the least cost for which taking each run as long as possible makes at most G runs.
//  2. Runs that cost at most C are taken, each as long as possible while each later group still has
//     a row.
//  3. Up to 8 times, or until nothing changes: for k = G-1 … 1 the border b between runs k-1 (from a)
//     and k (to c) moves. With q the first place in a+1 … c-1, among those at which both runs fit
//     their budget, where the run before costs at least what the run after does, b becomes the one of
//     q-1 and q, in this order, at which the costlier run costs least, if that is less than at b.
//  4. For rows × longest only: for k = G-1 … 1, the first sorted row before run k that is the longest
//     of no run, was not swapped yet, and with which the rows of run k would cost no more than the
//     costliest run, changes places with the longest row of run k.
//
// # Packed rows
//
// A packed order fills rows of L tokens with the rows of an order that is not bucketed, by a policy
// of package pack. Let R be the rows and T the tokens of all sources, m = max(1, T div R), and f
// the most packed rows that one row can make: 1 under bfd, else the longest row's length divided by
// L, rounded up. Then w is the least power of two that is not below
//
//	min(max(ceil(256·L/m), 2^12), 2^17, max(1, 2^18 div f))
//
// The positions of an epoch are cut into windows of w, the last one perhaps shorter, and each is
// packed by itself. Packed rows are numbered: an epoch has R·f numbers, epoch e begins at e·R·f,
// and window c of it at c·w·f more. The rows of a window take its first numbers; the others have no
// row. Under wrapped, and if shuffle is none, rows come in pack's order; else the row with the i-th
// number is pack's row permute(i), n = rows of the window, k = key(seed, 6, e, c).
//
// Start, and the position after a step, are such numbers. A number without a row stands for the
// next one that has a row; a step that ends with a window's last row is followed by the first
// number of the next window.
//
// # Invariants
//
//	I1  within an epoch of one source every row comes exactly once;
//	I2  the order of rows does not depend on batch size, token budget, rank, world, tail or start;
//	I3  balanced or not, all ranks of a step together have the rows from the step's position up to
//	    Next, each once (except rows that Pad repeats, and fillers);
//	I4  Next is the same on every rank; under Drop and Pad every rank gets the same number of batches.
//
// An Order and a Steps belong to one goroutine. Memory: O(bucket) for a window, 12 KiB for a mix. A Shared has windows,
// packed windows and balanced steps that several make once, in the memory that each of them has for its own.
package sampler

// Package sampler decides which rows come when: pure arithmetic, no I/O, no state that grows with
// the data.
//
// An Order maps a position (a row number that counts on through all epochs) to an example of a
// source. Steps deals the order out to the ranks of a training run as batches. A position is one
// integer, reaching it costs the same anywhere, and the order depends on the rows of the sources,
// shuffle, seed, bucket and group alone: batch size, token budget and world may change at any step.
//
// # The order, exactly
//
// What follows is normative, so that a reader in another language yields the same rows. All
// arithmetic is on unsigned 64-bit integers that wrap.
//
//	mix64(z): z ^= z>>30; z *= 0xbf58476d1ce4e5b9; z ^= z>>27; z *= 0x94d049bb133111eb; z ^= z>>31
//	fold(h, v) = mix64((h ^ v) + 0x9e3779b97f4a7c15)
//	key(v1, v2, …) = fold(… fold(fold(0, v1), v2) …)
//
// A permutation of n > 1 things under key k is a generalized Feistel network over a × b cells,
// where a is the least integer with a·a ≥ n and b = ceil(n/a). It has 8 rounds where n ≥ 2^20 and
// 16 below. To permute i: l = i mod a, r = i div a; in round t = 0, 1, …
//
//	t even: l = (l + (hash(t, r)·a >> 32)) mod a
//	t odd:  r = (r + (hash(t, l)·b >> 32)) mod b
//	hash(t, x) = mix64(x ^ fold(k, t+1)) >> 32
//
// and i becomes r·a + l; while that is not below n, the same is done again with it (cycle walking).
//
// Position p lies in epoch e = p div rows, at i = p mod rows. For source number s of the order (0
// where there is one):
//
//	none   example i
//	full   example permute(i), n = rows, k = key(seed, 1, s, e)
//	block  the example in blocks of 256 consecutive rows, the last one perhaps shorter, in the order
//	       permute(0), permute(1), … with n = number of blocks, k = key(seed, 2, s, e)
//
// A mix of sources has windows of 1024 positions, numbered c = p div 1024 from the first epoch on.
// Source s has share(s) of them: its weight's part of 1024 rounded down, at least 1, the rest given
// one each to the largest remainders (the lower s first where equal; where minimums make the sum
// too large, one is taken at a time from the largest share, the lower s first). With perm = permute
// under n = 1024, k = key(seed, 3, c), the index p mod 1024 belongs to the source in whose run of
// shares perm(p mod 1024) falls, and is that source's row number c·share(s) + (indexes of s before
// it in the window), which counts on through the source's own epochs. An epoch of the mix has as
// many positions as all sources have rows.
//
// Where the weights of a mix change at positions, the stretches between the changes are cut at the
// beginnings of epochs too, and the windows of each piece begin anew: they have 1024 positions, the
// last one of a piece perhaps n < 1024. There, the shares are the parts of n by weight, rounded down,
// and the rest to the largest remainders. A source of weight 0 has none. The permutation of a window
// that begins at position w is that under its n, k = key(seed, 5, w); and the number of a source's
// row in it is the sum of the source's shares in all windows before, and the indexes of it before.
//
// Bucketing cuts the positions of an epoch into windows of `bucket`, the last one perhaps shorter.
// A window's rows are sorted by length, equal lengths in the order they had; cut into groups of
// `group`, the last perhaps shorter; and the groups come in the order permute(0), permute(1), …
// with n = number of groups, k = key(seed, 4, e, number of the window).
//
// # Balance, exactly
//
// A balanced step deals the n rows that its ranks get without balance, in the order of these ranks.
// They make G = min(world, n) groups, and group g goes to rank (g + mix64(p) mod G) mod G, where p is
// the position at which the step begins. Rows within a batch keep their order. The rows are sorted
// by length, the longest first, equal lengths in the order they had. Lengths above 2^21 count as 2^21
// where they are squared.
//
// Quadratic without a token budget: each row in turn goes to the group with the least sum of squares
// among those that are not full, of equal ones the lowest. A group is full with n div G rows, and one
// more for the first n mod G groups.
//
// Otherwise the sorted rows are cut into G runs, group 0 first. A run costs its rows times its padded
// longest, or its sum of squares; under a token budget it has at most batch_size rows, and rows ×
// padded longest within the budget.
//
//  1. C is the least cost under which taking runs as long as they can be makes at most G.
//  2. Runs of at most C are taken as long as they can be, but so that each later group has a row.
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
// of package pack. Let the sources have R rows and T tokens in all, m = max(1, T div R), and f the
// most packed rows that one row can make: 1 under bfd, else the longest row's length divided by L,
// rounded up. Then w is the least power of two that is not below
//
//	min(max(ceil(256·L/m), 2^12), 2^17, max(1, 2^18 div f))
//
// The positions of an epoch are cut into windows of w, the last one perhaps shorter, and each is
// packed by itself. Packed rows are numbered: an epoch has R·f numbers, epoch e begins at e·R·f, and
// window c of it at c·w·f more. The rows of a window take its first numbers; the others have no
// row. Under wrapped, and where the order is that of the split (none), rows come as pack has them;
// else the row with the i-th number is pack's row permute(i), n = rows of the window,
// k = key(seed, 6, e, c).
//
// Start, and the position that follows a step, are such numbers. A number without a row stands for
// the next one that has a row; a step that ends with a window's last row is followed by the first
// number of the next window.
//
// # Invariants
//
//	I1  within an epoch of one source every row comes exactly once;
//	I2  the order of rows does not depend on batch size, token budget, rank, world, tail or start;
//	I3  balanced or not, over all ranks of a step, the rows are those from the step's position up to
//	    Next, each once (rows repeated by Pad apart);
//	I4  Next is the same on every rank; under Drop and Pad every rank gets the same number of batches.
//
// An Order and a Steps belong to one goroutine. Memory: O(bucket) for a window, 12 KiB for a mix.
package sampler

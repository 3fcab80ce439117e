// Package page is what the live pages share: their files, who may read them, and the figures that
// reach them.
//
// A Live samples figures once a second into a History of fixed size and sends them to viewers as
// server-sent events. One goroutine samples, for any number of viewers; a viewer that is too slow
// misses samples and nothing else waits for it.
//
// The pages are files of the server. They ask for nothing else, which their policy enforces, and
// they show what comes from a dataset as text.
//
//	I1  nothing here grows with the time that a page is open, or with the number of samples;
//	I2  without a viewer no state is made, only a sample of numbers.
package page

// Package plan is what plan, part and merge share: the plan, which is read whole or for one partition alone; the scan
// that makes one while the sources are read; the partition that is chosen to be built; and what a part leaves to the
// merge. The stages that a scan watches, and those that build a part, are in package ingest.
package plan

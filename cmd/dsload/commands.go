package main

import "github.com/spf13/cobra"

// groupAbout is the title of commands about the program itself.
const groupAbout = "About dsload"

// addCommands adds the commands to the root, each in its group, under the titles of the help. Each command has its
// own file.
func addCommands(root *cobra.Command) {
	for _, group := range []struct {
		title    string
		commands []*cobra.Command
	}{
		{"Make a dataset", []*cobra.Command{newBuildCommand(), newPlanCommand(), newMergeCommand()}},
		{"Look into it", []*cobra.Command{newSurveyCommand(), newViewCommand(), newInspectCommand(), newStatsCommand(),
			newVerifyCommand(), newWhichCommand()}},
		{"Train with it", []*cobra.Command{newServeCommand(), newExportCommand(), newHealthCommand()}},
		{"Tools", []*cobra.Command{newTokenizerCommand(), newBenchCommand(), newDoctorCommand(), newVersionCommand()}},
	} {
		root.AddGroup(&cobra.Group{ID: group.title, Title: group.title})
		for _, cmd := range group.commands {
			cmd.GroupID = group.title
			root.AddCommand(cmd)
		}
	}
	root.AddGroup(&cobra.Group{ID: groupAbout, Title: groupAbout})
	root.SetHelpCommand(newHelpCommand())
	root.SetHelpCommandGroupID(groupAbout)
	root.SetCompletionCommandGroupID(groupAbout)
	addCompletion(root)
}

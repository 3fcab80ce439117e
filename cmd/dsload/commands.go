package main

import "github.com/spf13/cobra"

// groupAbout is the title of commands about the program itself.
const groupAbout = "About dsload"

// addCommands adds the commands to the root, each in its group, under the titles of the help. Each command has its
// own file. If the first argument names a command, that one is made alone: the flags of all of them take a twelfth of
// the CPU time of a small build.
func addCommands(root *cobra.Command, args []string) {
	type maker struct {
		name string
		make func() *cobra.Command
	}
	groups := []struct {
		title    string
		commands []maker
	}{
		{"Make a dataset", []maker{{"build", newBuildCommand}, {"plan", newPlanCommand}, {"merge", newMergeCommand}}},
		{"Look into it", []maker{{"survey", newSurveyCommand}, {"view", newViewCommand}, {"inspect", newInspectCommand},
			{"stats", newStatsCommand}, {"verify", newVerifyCommand}, {"which", newWhichCommand}}},
		{"Train with it", []maker{{"serve", newServeCommand}, {"export", newExportCommand}, {"health", newHealthCommand}}},
		{"Tools", []maker{{"tokenizer", newTokenizerCommand}, {"bench", newBenchCommand}, {"doctor", newDoctorCommand},
			{"version", newVersionCommand}}},
	}
	named := ""
	for _, group := range groups {
		for _, m := range group.commands {
			if len(args) > 0 && args[0] == m.name {
				named = m.name
			}
		}
	}
	for _, group := range groups {
		root.AddGroup(&cobra.Group{ID: group.title, Title: group.title})
		for _, m := range group.commands {
			if named == "" || named == m.name {
				cmd := m.make()
				cmd.GroupID = group.title
				root.AddCommand(cmd)
			}
		}
	}
	root.AddGroup(&cobra.Group{ID: groupAbout, Title: groupAbout})
	root.SetHelpCommand(newHelpCommand())
	root.SetHelpCommandGroupID(groupAbout)
	root.SetCompletionCommandGroupID(groupAbout)
	addCompletion(root)
}

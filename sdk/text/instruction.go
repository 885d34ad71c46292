package text

import "regexp"

// instructionPattern finds text that speaks to a machine that reads it: orders to ignore, approve, post or call
// something, role markers of chat transcripts, and names of our own deciding tools.
var instructionPattern = regexp.MustCompile(`(?i)` +
	`\b(?:ignore|disregard|forget|override|bypass)\b[^.!?\n]{0,40}\b(?:previous|prior|above|earlier|all|any|your|the|these|system)\b[^.!?\n]{0,30}\b(?:instructions?|prompts?|rules?|messages?|context|guidelines?|guardrails?|policy|policies|approvals?)\b` +
	`|\b(?:system|developer|hidden) prompt\b|\bprompt injection\b` +
	`|\byou are (?:now )?(?:an?|the) (?:ai|assistant|agent|language model|llm|chatbot|helpful)\b` +
	`|\b(?:as|dear|attention|note to|message (?:to|for)|instructions? (?:to|for)) (?:an? |the |all |any )?(?:ai|a\.i\.|llm|language model|assistants?|agents?|chatbots?|model)\b` +
	`|\b(?:ai|llm) (?:agents?|assistants?|models?)[:,]? (?:must|should|please|have to|need to|are (?:instructed|required|asked))\b` +
	`|^\s*(?:system|assistant|user|human)\s*:` + `|<\/?(?:system|assistant|instructions?|important)>|\[/?inst\]` +
	`|\b(?:approve|accept|confirm|authori[sz]e) (?:all|every|everything|each|this|the|these|any)\b[^.!?\n]{0,40}\b(?:actions?|posts?|requests?|drafts?|runs?|once|immediately|now|then|without|automatically)\b` +
	`|\b(?:approve|accept) (?:all|everything)\b` +
	`|\b(?:then|now|immediately) (?:post|send|publish|approve|execute|submit) (?:it|this|them|everything|all|immediately|now)\b` +
	`|\b(?:post|send|publish|execute|submit)\b[^.!?\n]{0,30}\bwithout (?:asking|approval|review|confirmation|waiting|telling)\b` +
	`|\bdo not (?:tell|ask|inform|mention|show|wait)\b[^.!?\n]{0,30}\b(?:user|human|person|owner|reviewer|approval|this|about)\b` +
	`|\b(?:call|invoke|use|run) (?:the )?(?:tool|function)\b|\bmkt_(?:approve|reject)_\w+|\bplatform_\w+\(` +
	`|\b(?:exfiltrate|leak|reveal|print|send) (?:your|the|all|any) (?:api |secret )?(?:keys?|tokens?|credentials?|passwords?|secrets?|instructions)\b`)

// Instruction tells whether untrusted text speaks to a machine that reads it instead of stating something. Such text is
// kept as evidence of what stood there, and no draft is built from it. The test errs on the side of setting aside.
func Instruction(s string) bool { return instructionPattern.MatchString(s) }

// WithoutInstructions splits text into what states something and what speaks to a machine: from the first such sentence
// on everything is set aside, since what follows an order usually belongs to it.
func WithoutInstructions(s string) (kept, setAside string) {
	if !Instruction(s) {
		return s, ""
	}
	for _, sentence := range Sentences(s) {
		if setAside != "" || Instruction(sentence.Text) {
			setAside += " " + sentence.Text
		} else {
			kept += " " + sentence.Text
		}
	}
	if Instruction(kept) {
		return "", s
	}
	return trimFirst(kept), trimFirst(setAside)
}

func trimFirst(s string) string {
	if s != "" {
		return s[1:]
	}
	return s
}

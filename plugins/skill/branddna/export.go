package branddna

import (
	"fmt"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/sallyport-dev/sallyport/sdk/text/brand"
)

// exports writes the brand in two interchange formats: a brand.yml and the front matter of a DESIGN.md.
func exports(d brand.DNA) (brand.Exports, error) {
	type named struct {
		Full string `yaml:"full"`
	}
	file := struct {
		Meta struct {
			Name named  `yaml:"name"`
			Link string `yaml:"link,omitempty"`
		} `yaml:"meta"`
		Logo  string            `yaml:"logo,omitempty"`
		Color map[string]string `yaml:"color,omitempty"`
		Type  map[string]any    `yaml:"typography,omitempty"`
	}{}
	file.Meta.Name.Full = d.Identity.Name
	file.Meta.Link = d.Identity.URL
	if d.Identity.Logo != nil {
		file.Logo = d.Identity.Logo.URL
	}
	for _, c := range d.Visual.Colors {
		role := map[string]string{"text": "foreground", "accent": "tertiary"}[c.Role]
		if role == "" {
			role = c.Role
		}
		if file.Color == nil {
			file.Color = map[string]string{}
		}
		file.Color[role] = c.Hex
	}
	for _, f := range d.Visual.Fonts {
		role := map[string]string{"body": "base", "heading": "headings"}[f.Role]
		if role == "" {
			continue
		}
		if file.Type == nil {
			file.Type = map[string]any{}
		}
		file.Type[role] = map[string]string{"family": f.Family}
	}
	yml, err := yaml.Marshal(file)
	if err != nil {
		return brand.Exports{}, err
	}
	return brand.Exports{BrandYML: string(yml), DesignMD: designFile(d)}, nil
}

func designFile(d brand.DNA) string {
	var b strings.Builder
	fmt.Fprintf(&b, "---\nname: %s\ncolors:\n", strconv.Quote(d.Identity.Name))
	for _, c := range d.Visual.Colors {
		fmt.Fprintf(&b, "  %s: %q\n", c.Role, c.Hex)
	}
	b.WriteString("typography:\n")
	for _, f := range d.Visual.Fonts {
		fmt.Fprintf(&b, "  %s: %s\n", f.Role, strconv.Quote(f.Family))
	}
	b.WriteString("---\n\n# " + d.Identity.Name + "\n\n")
	if d.Identity.Tagline != "" {
		b.WriteString(d.Identity.Tagline + "\n\n")
	}
	for _, line := range d.Voice.Do {
		b.WriteString("- Do: " + line + "\n")
	}
	for _, line := range d.Voice.Dont {
		b.WriteString("- Avoid: " + line + "\n")
	}
	return b.String()
}

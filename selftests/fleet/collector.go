// SPDX-License-Identifier: GPL-2.0-or-later

// OpenTelemetry's Collector with what the test of fleets uses of it: it takes OTLP, prints what it
// got or sends it on, and asks who sends for a token. It is built of Debian's packages only.
package main

import (
	"context"
	"crypto/subtle"
	"errors"
	"log"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/provider/envprovider"
	"go.opentelemetry.io/collector/confmap/provider/fileprovider"
	"go.opentelemetry.io/collector/exporter/debugexporter"
	"go.opentelemetry.io/collector/exporter/otlphttpexporter"
	"go.opentelemetry.io/collector/extension"
	"go.opentelemetry.io/collector/otelcol"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/service/telemetry/otelconftelemetry"
)

// token is an extension that lets only those in who send a token. The Collector's own one,
// bearertokenauth, is in a repository that Debian does not package.
type token struct {
	component.StartFunc
	component.ShutdownFunc
	Token string `mapstructure:"token"`
}

func (t *token) Authenticate(ctx context.Context, headers map[string][]string) (context.Context, error) {
	for _, name := range []string{"authorization", "Authorization"} {
		for _, value := range headers[name] {
			if subtle.ConstantTimeCompare([]byte(value), []byte("Bearer "+t.Token)) == 1 {
				return ctx, nil
			}
		}
	}
	return ctx, errors.New("this is not the token")
}

func newToken(_ context.Context, _ extension.Settings, config component.Config) (extension.Extension, error) {
	return config.(*token), nil
}

func factories() (otelcol.Factories, error) {
	var ret otelcol.Factories
	var err error
	tokens := extension.NewFactory(component.MustNewType("token"),
		func() component.Config { return &token{} }, newToken, component.StabilityLevelStable)

	if ret.Extensions, err = otelcol.MakeFactoryMap(tokens); err != nil {
		return ret, err
	}
	if ret.Receivers, err = otelcol.MakeFactoryMap(otlpreceiver.NewFactory()); err != nil {
		return ret, err
	}
	ret.Exporters, err = otelcol.MakeFactoryMap(debugexporter.NewFactory(),
		otlphttpexporter.NewFactory())
	ret.Telemetry = otelconftelemetry.NewFactory()
	return ret, err
}

func main() {
	providers := []confmap.ProviderFactory{fileprovider.NewFactory(), envprovider.NewFactory()}
	settings := otelcol.CollectorSettings{
		BuildInfo: component.BuildInfo{Command: "collector", Version: "of Debian's packages"},
		Factories: factories,
		ConfigProviderSettings: otelcol.ConfigProviderSettings{
			ResolverSettings: confmap.ResolverSettings{ProviderFactories: providers}},
	}

	if err := otelcol.NewCommand(settings).Execute(); err != nil {
		log.Fatal(err)
	}
}

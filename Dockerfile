# The image that "velero plugin add" takes: the binary, which copies itself to /target when it is started without a command.
# docker buildx build --platform linux/amd64,linux/arm64 --build-arg VERSION=v0.1.0 --build-arg COMMIT="$(git rev-parse HEAD)" .
#
# "make image" and "make release" carry out this file without a container engine (test/image), and fail at an instruction that they don't know.

FROM --platform=$BUILDPLATFORM golang:1.26.8@sha256:6c2a5538f964f1c82f97ad14988bf05de100d922d159d0e398b54c7b0ca0c6c9 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=v0.0.0-dev
ARG COMMIT=unknown
ARG TARGETOS
ARG TARGETARCH
ENV CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH
RUN go build -trimpath -buildvcs=false -ldflags "-s -w -X main.release=$VERSION -X main.commit=$COMMIT" -o /out/velero-plugin-for-crossplane .

FROM scratch
ARG VERSION=v0.0.0-dev
ARG COMMIT=unknown
LABEL org.opencontainers.image.title="velero-plugin-for-crossplane" \
      org.opencontainers.image.description="Makes Velero backup and restore safe for Crossplane" \
      org.opencontainers.image.source="https://github.com/crossplane-contrib/velero-plugin-for-crossplane" \
      org.opencontainers.image.documentation="https://github.com/crossplane-contrib/velero-plugin-for-crossplane/tree/$VERSION/docs" \
      org.opencontainers.image.licenses="Apache-2.0" \
      io.artifacthub.package.readme-url="https://raw.githubusercontent.com/crossplane-contrib/velero-plugin-for-crossplane/$VERSION/README.md" \
      io.artifacthub.package.license="Apache-2.0" \
      io.artifacthub.package.keywords="crossplane,velero,backup,restore,disaster-recovery" \
      org.opencontainers.image.version=$VERSION \
      org.opencontainers.image.revision=$COMMIT
COPY LICENSE /licenses/
COPY --from=build /out/velero-plugin-for-crossplane /plugins/velero-plugin-for-crossplane
USER 65532:65532
ENTRYPOINT ["/plugins/velero-plugin-for-crossplane"]
CMD ["install"]

# What runs is the same on every platform; better-sqlite3 brings its binaries for each, so nothing is compiled here and
# no install script is wanted.
FROM node:24-slim AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --ignore-scripts --loglevel=notice
COPY tsconfig.json .rolldown.config.ts ./
COPY src ./src
RUN npm run build

FROM node:24-slim AS dependencies
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
# The driver of PostgreSQL is the user's to install, as with a package; the image has it.
RUN npm pkg delete devDependencies.pg && npm pkg set 'dependencies.pg=*'
# The optional dependencies are Node itself, for machines that have another one. The image has its own.
RUN npm ci --omit=dev --omit=optional --ignore-scripts --loglevel=notice

FROM node:24-slim
ENV NODE_ENV=production
WORKDIR /app
COPY package.json LICENSE ./
COPY config/scenarios ./config/scenarios
COPY config/schema.json ./config/
COPY --from=dependencies /app/node_modules ./node_modules
COPY --from=build /app/dist ./dist
# The one place that is written to. A relative store.url, as the default sqlite:data/sidecar.db, starts here and not at the
# configuration, which is mounted read-only.
ENV SIDECAR_STORE_BASE=/app
RUN mkdir data && chown 65532:65532 data && chmod 700 data
# For the commands of an operator: `kubectl exec POD -c agent-session-sidecar -- session-sidecar status -c …`.
RUN chmod 755 dist/main.js && mkdir bin && ln -s ../dist/main.js bin/session-sidecar
ENV PATH=/app/bin:$PATH
VOLUME ["/app/data"]
USER 65532:65532
EXPOSE 8480 8481
# Of `admin.listen` a health check knows only what the environment says, or the default.
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s CMD ["node", "-e", "const port = (process.env.SIDECAR_ADMIN__LISTEN || ':8481').split(':').pop(); fetch(`http://127.0.0.1:${port}/readyz`).then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
CMD ["node", "dist/main.js", "run", "-c", "/etc/sidecar/sidecar.yaml"]

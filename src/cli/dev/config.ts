import type { ConfigInput } from '../../sidecar/config/schema.ts'

/** The configuration that `dev` runs with: all three channels, one handler for everything, two tools. */
export function devConfig(parts: {
  service: { baseUrl: string; token: string }
  app: { url: string; secret: string }
  adminPort: number
  webhookPort: number
  storeFile: string
}): ConfigInput {
  const { service, app, adminPort, webhookPort, storeFile } = parts
  return {
    service: { base_url: service.baseUrl, token: service.token },
    store: { url: `sqlite:${storeFile}` },
    stream: { start_from: 'beginning' },
    webhooks: {
      enabled: true,
      listen: `127.0.0.1:${webhookPort}`,
      public_url: `http://127.0.0.1:${webhookPort}/webhooks`,
    },
    polling: { interval: '2s', sweep: '15s' },
    handlers: [{ name: 'app', url: `${app.url}/agent-events`, secret: app.secret, events: ['*'] }],
    tools: [
      {
        name: 'lookup_order',
        description: 'Finds an order by its id',
        parameters: { type: 'object', properties: { order_id: { type: 'string' } }, required: ['order_id'] },
        url: `${app.url}/tools/lookup_order`,
        secret: app.secret,
      },
      {
        name: 'check_stock',
        description: 'Counts what is in stock of an article',
        parameters: { type: 'object', properties: { sku: { type: 'string' } }, required: ['sku'] },
        url: `${app.url}/tools/check_stock`,
        secret: app.secret,
      },
    ],
    admin: { listen: `127.0.0.1:${adminPort}` },
    // The intentional failures of the tour are shown above, not in the log.
    log: { level: 'error' },
  }
}

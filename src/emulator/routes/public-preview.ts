import type { FastifyInstance } from 'fastify'
import { visitWorkspace } from '../sandbox.ts'
import type { World } from '../world.ts'

/**
 * Answers public requests to a published preview: any request whose host is `SESSION.DOMAIN`. The
 * first one resumes a paused workspace. The emulator runs no service, so the answer is a text that
 * describes it.
 */
export function mountPublicPreviews(app: FastifyInstance, world: World): void {
  const { previewDomain } = world
  if (previewDomain === null) return
  const tail = `.${previewDomain}`
  const host = new RegExp(`${tail.replaceAll('.', '\\.')}(:\\d+)?$`, 'i')
  for (const url of ['/', '/*']) {
    app.get(url, { constraints: { host } }, async (request, reply) => {
      const id = request.hostname.slice(0, -tail.length)
      const session = world.sessions.find(id)
      if (session?.preview.publishedUrl == null || !session.workspace.exists) {
        return reply.code(404).type('text/plain').send('Nothing is published here.\n')
      }
      visitWorkspace(world, session)
      return reply.type('text/plain').send(`Port ${session.preview.port} of session ${id}.\n`)
    })
  }
}

import { writing, type Check } from '../check.ts'
import { typeOf } from '../feed.ts'
import { at, beginning, is, kind, rowsOf, string, textAt } from '../kind.ts'
import { fill } from '../places.ts'
import type { Reply } from '../reply.ts'
import { speech } from '../speech.ts'
import { Stuck } from '../stuck.ts'
import { framesOf, turnOf } from '../talk.ts'
import type { Trial } from '../trial.ts'

const READS = ['artifacts:read']

async function list(trial: Trial, sessionId: string): Promise<Reply> {
  const { artifacts } = trial.places
  if (artifacts === null) throw new Stuck('the description does not show the path of artifacts')
  return trial.get(fill(artifacts, { session: sessionId }))
}

const published = writing(
  'files under outputs are published',
  'ART-01 ART-02 ART-04..11 AUT-37 EVT-49 EVT-62 EVT-88 GEN-09 GEN-10 TRN-13 TRN-22 VER-12 GEN-03 STA-29 AUT-15',
  async (trial) => {
    const id = await trial.session()
    await turnOf(trial, id, speech.write('outputs/conform.txt', 'conforming'))
    const all = await list(trial, id)
    const [artifact] = rowsOf(all.json)
    if (artifact === undefined) throw new Stuck('the agent wrote nothing under /workspace/outputs')
    trial.expect('ART-01 ART-02 TRN-13 STA-29 GEN-03', all, 'an artifact', true)
    const artifactId = textAt(artifact, 'id')
    trial.value('ART-04', all, 'id', artifactId, beginning('art_'))
    trial.note(
      'ART-05',
      Object.keys(Object(artifact) as object)
        .filter((key) => key !== 'id')
        .join(', '),
    )
    const { artifacts, deleteArtifact } = trial.places
    trial.note('ART-10', `GET ${artifacts?.path ?? ''}`)
    const base = `/v1/sessions/${id}/artifacts`
    const bytes = await trial.get(`${base}/${artifactId}/content`)
    trial.status('ART-09 AUT-37', bytes, 200)
    trial.expect('ART-09 GEN-09', bytes, 'the raw bytes', bytes.text.includes('conforming'))
    const type = bytes.headers['content-type'] ?? ''
    const own = type.startsWith('text/plain')
    const neutral = type.startsWith('application/octet-stream')
    trial.expect('ART-06', bytes, 'text/plain, or application/octet-stream (VER-12)', own || neutral, type)
    const archive = await trial.get(`${base}/archive`)
    trial.status('ART-07 AUT-15', archive, 200)
    const media = (archive.headers['content-type'] ?? '').split(';')[0] ?? ''
    trial.value('ART-08 GEN-10', archive, 'content-type', media, is('application/x-tar'))
    // Every tar archive has `ustar` at byte 257.
    const tar = archive.text.slice(257, 262) === 'ustar' && archive.text.includes('conform.txt')
    trial.expect('ART-07 GEN-10', archive, 'a tar archive with the file', tar, archive.text.slice(0, 60))
    const frames = await framesOf(trial, id, (some) => some.some((one) => typeOf(one) === 'artifact.created'))
    const stream = trial.ground.feed?.reply ?? null
    const names = frames.map(typeOf)
    trial.expect(
      'EVT-62 EVT-88',
      stream,
      'a frame artifact.created',
      names.includes('artifact.created'),
      names.join(', '),
    )
    trial.expect('EVT-49', stream, 'a frame file.changed', names.includes('file.changed'), names.join(', '))
    if (deleteArtifact === null) return trial.leave('ART-11', 'the description does not show it')
    trial.note('ART-11', `DELETE ${deleteArtifact.path}`)
    await trial.deployment.call('DELETE', fill(deleteArtifact, { session: id, artifact: artifactId }))
    const after = await list(trial, id)
    if (rowsOf(after.json).length > 0) trial.note('ART-11', 'a deleted artifact is still listed')
    await trial.remove(id)
  },
  READS,
)

const skipped = writing(
  'a file past a limit is skipped and named',
  'TRN-14 TRN-16..18 TRN-25 LIM-54 LIM-56..58 TRN-05',
  async (trial) => {
    const id = await trial.session()
    const { turn, reply } = await turnOf(trial, id, speech.writeLarge('outputs/large.bin', 200))
    if (at(turn, 'artifacts') !== 'partial') {
      return trial.leave(
        'LIM-56',
        'a file of 200 MiB was not written, or is under the limits of this deployment',
      )
    }
    trial.value('TRN-14 TRN-25 LIM-58', reply, 'artifacts', at(turn, 'artifacts'), is('partial'))
    trial.value('LIM-57 TRN-05', reply, 'status', at(turn, 'status'), is('completed'))
    trial.shape(reply, turn, [
      [
        'artifacts_skipped.0.path',
        'TRN-16 TRN-17 LIM-56',
        kind('the path of the file', (path) => String(path).includes('large.bin')),
      ],
      ['artifacts_skipped.0.reason', 'TRN-18', string],
    ])
    trial.note('LIM-54', `under 200 MiB: ${textAt(turn, 'artifacts_skipped.0.reason')}`)
    await trial.remove(id)
  },
  READS,
)

export const artifacts: readonly Check[] = [published, skipped]

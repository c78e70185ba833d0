import { post } from './api.js'
import { count } from './format.js'
import { html } from './html.js'
import { useRef, useState } from './vendor/hooks.js'

/** Retries all dead letters, of one handler or of all; first it counts them. */
export function BulkRetry({ handler, onDone }) {
  const dialog = useRef(null)
  const [found, setFound] = useState(null)
  const [fault, setFault] = useState(null)
  const selection = { status: 'dead', ...(handler === '' ? {} : { handler }) }
  const ask = async (dryRun) => await post('api/deliveries/retry', { ...selection, dry_run: dryRun })
  const open = async () => {
    setFound(null)
    setFault(null)
    dialog.current.showModal()
    await ask(true).then(
      (answer) => setFound(answer.count),
      (error) => setFault(error.message),
    )
  }
  const go = async (event) => {
    event.preventDefault()
    await ask(false).then(
      (answer) => {
        dialog.current.close()
        onDone(answer.count)
      },
      (error) => setFault(error.message),
    )
  }
  return html`<button onClick=${open}>Retry dead letters …</button>
    <dialog ref=${dialog} aria-label="Retry dead letters">
      <h2>Retry dead letters</h2>
      <p>
        ${found === null ? 'Counting …' : `${count(found, 'dead letter')} of ${handler === '' ? 'all handlers' : handler}.`}${' '}
        They are sent as usual, in order within each session.
      </p>
      ${fault !== null && html`<p class="fault" role="alert">${fault}</p>`}
      <form method="dialog" onSubmit=${(event) => event.submitter?.value === 'go' && go(event)}>
        <button value="go" disabled=${found === null || found === 0}>
          ${found === null ? 'Retry' : `Retry ${count(found, 'delivery', 'deliveries')}`}
        </button>
        <button value="leave" class="quiet">Cancel</button>
      </form>
    </dialog>`
}

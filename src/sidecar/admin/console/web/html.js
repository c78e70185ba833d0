import htm from './vendor/htm.js'
import { h } from './vendor/preact.js'

/** Templates without a compiler. A value in `${}` becomes text or an attribute, never markup. */
export const html = htm.bind(h)

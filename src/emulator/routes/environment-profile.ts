import { operation, shape, type Operation } from '../operation.ts'
import { pageOf, placeById, plainPage } from '../page.ts'
import type { OpenDetails } from '../profile/details.ts'
import { viewList } from '../view.ts'

/** The one environment profile that there is, which has no variables. */
const PROFILES = [
  { object: 'environment_profile', id: 'envp_default', name: 'default', is_default: true, variable_count: 0 },
]

/** True for the id of a profile that sessions may name. */
export function isProfile(id: string): boolean {
  return PROFILES.some((profile) => profile.id === id)
}

export function environmentProfileOperations(details: OpenDetails): Operation[] {
  return [
    operation({
      id: 'listEnvironmentProfiles',
      method: 'GET',
      path: '/v1/environment-profiles',
      summary: 'List environment profiles',
      access: 'sessions:read',
      cost: 'read',
      query: plainPage,
      success: { status: 200, description: 'One page.', schema: shape('EnvironmentProfileList') },
      handle: ({ query }) => {
        const page = pageOf(PROFILES, query, placeById(PROFILES))
        return { status: 200, body: viewList(details, page, (profile) => profile) }
      },
    }),
  ]
}

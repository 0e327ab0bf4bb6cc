// SPDX-License-Identifier: Apache-2.0
module stand_in_api

go 1.26

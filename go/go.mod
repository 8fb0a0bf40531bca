// SPDX-License-Identifier: LGPL-2.1-or-later

module shstk/go

go 1.19
